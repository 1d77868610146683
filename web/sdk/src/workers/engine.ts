/** The part all engine Workers share: jobs known, units at work, answers. */

import { Blobs, type StoredBlob, UnitError } from "./blobs.js";
import { Hashing } from "./hashing.js";
import type { Means } from "./runtime/words.js";
import type { BrainJob, FromEngine, ToEngine, ToSim, ToStage, UnitFailure, UnitSpan } from "./messages.js";

/** What a kind of engine adds. */
export interface Computer {
  /** Makes ready what all units of a job share; its time is not the unit's. */
  prepare(task: Task): Promise<void>;
  compute(task: Task): Promise<Computed>;
  forget(job: number): void;
  /** Of a GPU: bands of simulations. */
  sim?(ask: ToSim, info: (job: number) => BrainJob | undefined): void;
  /** Of models: parts that crews keep ready. */
  stage?(ask: ToStage, info: (job: number) => BrainJob | undefined): void;
  /** Of models: the donor lends this from now on. */
  lend?(means: Means): void;
  /** Of a GPU: what the probe kernel gave, if it ran. */
  readonly probed?: string | undefined;
}

/** A unit's result; `release` when it was delivered. */
export interface Computed {
  bytes: Uint8Array<ArrayBuffer>;
  /** Which engine computed it, where there are several. */
  by?: string;
  release(): void;
}

export interface Task {
  unit: UnitSpan;
  info: BrainJob;
  signal: AbortSignal;
}

export function say(message: FromEngine, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

/** Serves the brain Worker: `open` makes the computer when the first message tells where things are. */
export function serve(
  open: (blobs: Blobs, wasm: string, means?: Means) => Promise<Computer>,
  isFatal: (failure: UnitFailure) => boolean,
): void {
  const jobs = new Map<number, BrainJob>();
  const running = new Map<number, AbortController>();
  const needed = new Map<string, (() => void)[]>();
  let blobs: Blobs;
  let computer: Promise<Computer>;

  /** Waits until the brain Worker has seen to it that other devices were asked for a blob. */
  function need(blob: StoredBlob): Promise<void> {
    return new Promise((resolve) => {
      const waiting = needed.get(blob.hash);
      needed.set(blob.hash, [...(waiting ?? []), resolve]);
      if (!waiting) say({ type: "need", blob: { hash: blob.hash, size: blob.size } });
    });
  }

  async function run(unit: UnitSpan): Promise<void> {
    let began = performance.now();
    const abort = new AbortController();
    running.set(unit.attempt, abort);
    let computed: Computed | undefined;
    try {
      const info = jobs.get(unit.job);
      if (!info) throw new UnitError({ kind: "internal", message: `job ${unit.job} is unknown` });
      const task = { unit, info, signal: abort.signal };
      const engine = await computer;
      await engine.prepare(task);
      began = performance.now();
      if (unit.warms) return say({ type: "done", attempt: unit.attempt, took: 0, result: { inline: new Uint8Array(0) } });
      computed = await engine.compute(task);
      // Whoever asked a service waits for the bytes themselves.
      const stored = unit.body ? undefined : await blobs.deliver(unit, computed.bytes, abort.signal);
      const result = stored ?? { inline: computed.bytes.slice() };
      const took = performance.now() - began;
      if (!abort.signal.aborted) say({ type: "done", attempt: unit.attempt, took, result, ...(computed.by ? { by: computed.by } : {}) });
    } catch (error) {
      if (abort.signal.aborted) return;
      const failure = asFailure(error);
      const took = performance.now() - began;
      const failed: FromEngine = { type: "failed", attempt: unit.attempt, took, failure };
      say(isFatal(failure) ? { ...failed, fatal: true } : failed);
    } finally {
      computed?.release();
      running.delete(unit.attempt);
      // Nobody wants to know more of it.
      if (abort.signal.aborted) say({ type: "rest", attempt: unit.attempt });
    }
  }

  addEventListener("message", ({ data }: MessageEvent<ToEngine>) => {
    switch (data.type) {
      case "open":
        blobs = new Blobs(data.base, data.session, new Hashing(data.hashing), need, say, data.blobs);
        computer = open(blobs, data.wasm, data.means);
        computer.then(
          ({ probed }) => say(probed === undefined ? { type: "ready" } : { type: "ready", class: probed }),
          (error: unknown) => say({ type: "broken", message: asFailure(error).message }),
        );
        break;
      case "session":
        blobs.setSession(data.session);
        break;
      case "means":
        void computer.then((computer) => computer.lend?.(data.means)).catch(() => undefined);
        break;
      case "had":
        for (const had of needed.get(data.hash) ?? []) had();
        needed.delete(data.hash);
        break;
      case "found":
      case "stream":
        blobs.hear(data);
        break;
      case "job":
        jobs.set(data.job, data.info);
        break;
      case "run":
        void run(data.unit);
        break;
      case "abort":
        running.get(data.attempt)?.abort();
        break;
      case "forget":
        jobs.delete(data.job);
        blobs.forget(data.job);
        void computer.then((computer) => computer.forget(data.job)).catch(() => undefined);
        break;
      case "audition":
      case "sim":
      case "leave":
        void computer.then((computer) => computer.sim?.(data, (job) => jobs.get(job))).catch(() => undefined);
        break;
      case "stage":
      case "unstage":
        void computer.then((computer) => computer.stage?.(data, (job) => jobs.get(job))).catch(() => undefined);
        break;
    }
  });
}

export function asFailure(error: unknown): UnitFailure {
  if (error instanceof UnitError) return error.failure;
  // Engines' modules reject with plain objects.
  if (typeof error === "object" && error !== null && "kind" in error) return error as UnitFailure;
  return { kind: "internal", message: String(error) };
}
