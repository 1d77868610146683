/** Which devices hold which layers of a language model, or how much of every matrix. */

import type { LanguageModel, Service } from "@shoal/sdk";

export interface Holder {
  node: number;
  name: string;
  /** The first and the last of its layers, counted from 1. */
  layers: readonly [number, number];
  /** Of every matrix of these layers, in hundredths: all, or what this device computes of it beside others. */
  share: number;
  ready: boolean;
}

/** Those that hold all of it. */
export function wholeOf(model: LanguageModel | null, service: Service | undefined): Holder[] {
  if (!model) return [];
  const { layers } = model;
  return (service?.replicas ?? []).map(({ node, name, ready }) => ({ node, name, layers: [1, layers], share: 100, ready }));
}

/** Those that hold it together, in the order of its layers. */
export function stagesOf({ layers }: LanguageModel, service: Service | undefined): Holder[] {
  const stages = service?.crew?.stages ?? [];
  const parts = stages.reduce((sum, stage) => sum + stage.parts, 0);
  const before = (part: number) => Math.floor((part * layers) / parts);
  return stages.map(({ node, name, firstPart, parts: own, ready }) => {
    if (service?.crew?.sideBySide) return { node, name, layers: [1, layers], share: Math.round((own * 100) / parts), ready };
    return { node, name, layers: [before(firstPart) + 1, before(firstPart + own)], share: 100, ready };
  });
}

export function layersWords({ layers: [first, last], share, ready }: Holder): string {
  const which = first === last ? `layer ${first}` : `layers ${first} to ${last}`;
  const words = share < 100 ? `${share} % of ${which}` : which;
  return ready ? `holds ${words}` : `is loading ${words}`;
}
