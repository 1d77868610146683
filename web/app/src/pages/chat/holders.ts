/** Which devices hold which layers of a language model. */

import type { LanguageModel, Service } from "@shoal/sdk";

export interface Holder {
  node: number;
  name: string;
  /** The first and the last of its layers, counted from 1. */
  layers: readonly [number, number];
  ready: boolean;
}

/** Those that hold all of it. */
export function wholeOf(model: LanguageModel | null, service: Service | undefined): Holder[] {
  if (!model) return [];
  const { layers } = model;
  return (service?.replicas ?? []).map(({ node, name, ready }) => ({ node, name, layers: [1, layers], ready }));
}

/** Those that hold it together, in the order of its layers. */
export function stagesOf({ layers }: LanguageModel, service: Service | undefined): Holder[] {
  const stages = service?.crew?.stages ?? [];
  const parts = stages.reduce((sum, stage) => sum + stage.parts, 0);
  const before = (part: number) => Math.floor((part * layers) / parts);
  return stages.map(({ node, name, firstPart, parts, ready }) => {
    return { node, name, layers: [before(firstPart) + 1, before(firstPart + parts)], ready };
  });
}

export function layersWords({ layers: [first, last], ready }: Holder): string {
  const words = first === last ? `layer ${first}` : `layers ${first} to ${last}`;
  return ready ? `holds ${words}` : `is loading ${words}`;
}
