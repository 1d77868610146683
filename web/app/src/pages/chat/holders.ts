/** Which devices hold which layers of a language model. */

import type { LanguageModel, Service } from "@shoal/sdk";

export interface Holder {
  node: number;
  name: string;
  /** The first and the last of its layers, counted from 1. */
  layers: readonly [number, number];
  ready: boolean;
}

/** Those that hold all of it, then those that hold it together, in the order of its layers. */
export function holdersOf({ layers }: LanguageModel, service: Service | undefined): Holder[] {
  const whole = (service?.replicas ?? []).map(({ node, name, ready }): Holder => ({ node, name, layers: [1, layers], ready }));
  const stages = service?.crew?.stages ?? [];
  const parts = stages.reduce((sum, stage) => sum + stage.parts, 0);
  const before = (part: number) => Math.floor((part * layers) / parts);
  const some = stages.map(({ node, name, firstPart, parts, ready }): Holder => {
    return { node, name, layers: [before(firstPart) + 1, before(firstPart + parts)], ready };
  });
  return [...whole, ...some];
}

export function layersWords({ layers: [first, last], ready }: Holder): string {
  const words = first === last ? `layer ${first}` : `layers ${first} to ${last}`;
  return ready ? `holds ${words}` : `is loading ${words}`;
}
