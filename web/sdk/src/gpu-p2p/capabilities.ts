/** What two devices can both do. */

import type { Said } from "./words.js";

export interface GPUPeerCapabilities {
  /** Of both devices. */
  features: string[];
  /** What both hold: the stricter of each. */
  limits: Record<string, number>;
  /** 16-bit floats in shaders, on both. */
  float16: boolean;
  /** Subgroup operations, on both. */
  subgroups: boolean;
}

export function describe({ features, limits }: GPUDevice): Said {
  const numbers: Record<string, number> = {};
  // Limits are getters of the prototype, so that only `in` sees them all.
  for (const name in limits) {
    const value: unknown = limits[name as keyof GPUSupportedLimits];
    if (typeof value === "number") numbers[name] = value;
  }
  return { features: [...features].sort(), limits: numbers };
}

export function both(mine: Said, other: Said): GPUPeerCapabilities {
  const features = mine.features.filter((feature) => other.features.includes(feature));
  const limits: Record<string, number> = {};
  for (const [name, value] of Object.entries(mine.limits)) {
    const others = other.limits[name];
    // Alignments are met by the coarser one.
    if (others !== undefined) limits[name] = name.startsWith("min") ? Math.max(value, others) : Math.min(value, others);
  }
  return { features, limits, float16: features.includes("shader-f16"), subgroups: features.includes("subgroups") };
}
