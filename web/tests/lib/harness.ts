/** Runs units in engine Workers as the brain does, but asked by a test. Bundled by `engines.mjs`. */

import { Engines, initSync } from "../../sdk/generated/brain/brain.js";
import { streamAll } from "../../sdk/src/workers/crews.js";
import { Lane } from "../../sdk/src/workers/lane.js";
import type { BrainJob, UnitFailure, UnitResult, UnitSpan } from "../../sdk/src/workers/messages.js";

export type Answer = { result: UnitResult } | { failure: UnitFailure };

/** Units of one job, one after the other; the job is forgotten afterwards. */
export type Run = (kind: "gpu" | "cpu", info: BrainJob, units: UnitSpan[]) => Promise<Answer[]>;

export async function open(base: string): Promise<Run> {
  const hashing = await WebAssembly.compileStreaming(fetch(`${base}/assets/brain_bg.wasm`));
  const infos = new Map<number, BrainJob>();
  const waiting = new Map<number, (answer: Answer) => void>();
  initSync({ module: hashing });
  const lane = (worker: string, wasm: string, isGpu: boolean) =>
    new Lane({
      engines: new Engines(isGpu),
      worker: `${base}/assets/${worker}.js`,
      wasm: `${base}/assets/${wasm}`,
      base,
      hashing,
      session: () => "session",
      info: (job) => infos.get(job),
      onDone: (attempt, _took, result) => waiting.get(attempt)?.({ result }),
      onFailed: (attempt, _took, failure) => waiting.get(attempt)?.({ failure }),
      onHealth: () => undefined,
      onNeed: () => Promise.resolve(),
      onSeek: streamAll,
      onSim: () => undefined,
    });
  const lanes = { gpu: lane("gpu-worker", "gpu_bg.wasm", true), cpu: lane("wasi-worker", "", false) };
  for (const lane of Object.values(lanes)) lane.limit(1);
  return async (kind, info, units) => {
    const answers: Answer[] = [];
    for (const unit of units) {
      infos.set(unit.job, info);
      answers.push(
        await new Promise<Answer>((resolve) => {
          waiting.set(unit.attempt, resolve);
          lanes[kind].run(unit);
        }),
      );
      waiting.delete(unit.attempt);
    }
    for (const { job } of units) {
      lanes[kind].forget(job);
      infos.delete(job);
    }
    return answers;
  };
}
