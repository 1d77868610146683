/** The engine Workers of a node: kernels on one, programs on others. */

import { Lane, type LaneConfig } from "./lane.js";
import type { Places } from "./messages.js";

/** Units the GPU Worker holds: one computes, the others' bytes travel. */
const GPU_DEPTH = 3;

type Own = "worker" | "wasm" | "base" | "depth" | "listens" | "onHealth";
/** What both kinds share, and how the GPU is doing. */
export type LanesConfig = Omit<LaneConfig, Own> & { onGpu: LaneConfig["onHealth"] };

export function openLanes(places: Places, { onGpu, ...shared }: LanesConfig): { gpu: Lane; cpu: Lane } {
  const { base } = places;
  const gpu = new Lane({
    ...shared,
    base,
    worker: places.gpuWorker,
    wasm: places.gpuWasm,
    depth: GPU_DEPTH,
    listens: true,
    onHealth: onGpu,
  });
  const cpu = new Lane({
    ...shared,
    base,
    worker: places.wasiWorker,
    wasm: "",
    depth: 1,
    listens: false,
    onHealth: (problem) => problem && console.error(`programs cannot run: ${problem}`),
  });
  return { gpu, cpu };
}
