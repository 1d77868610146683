/** The engine Workers of a node: kernels on one, programs on others. */

import { Engines } from "../../generated/brain/brain.js";
import { Lane, type LaneConfig } from "./lane.js";
import type { Places } from "./messages.js";

type Own = "engines" | "worker" | "wasm" | "base" | "onHealth";
/** What both kinds share, and how the GPU is doing. */
export type LanesConfig = Omit<LaneConfig, Own> & { onGpu: LaneConfig["onHealth"] };

export function openLanes(places: Places, { onGpu, ...shared }: LanesConfig): { gpu: Lane; cpu: Lane } {
  const { base } = places;
  const gpu = new Lane({
    ...shared,
    base,
    engines: new Engines(true),
    worker: places.gpuWorker,
    wasm: places.gpuWasm,
    onHealth: onGpu,
  });
  const cpu = new Lane({
    ...shared,
    base,
    engines: new Engines(false),
    worker: places.wasiWorker,
    wasm: "",
    onHealth: (problem) => problem && console.error(`programs cannot run: ${problem}`),
  });
  return { gpu, cpu };
}
