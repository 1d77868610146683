/** The Worker for models: it keeps them loaded and answers one request after the other. A run that does not end is ended
 * with its Worker. */

import init, { Model } from "../../generated/onnx/onnx.js";
import type { OnnxWork } from "../../generated/brain/brain.js";
import { type Blobs, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import type { BrainJob, UnitFailure } from "./messages.js";
import { pack } from "./pack.js";

/** Models loaded at a time, as in a native node: the coordinator places no more services here than the donor's memory
 * holds, so this is only a last resort. */
const KEPT = 16;

class ModelComputer implements Computer {
  /** The one used last comes last. */
  private readonly loaded = new Map<number, Model>();
  private readonly loading = new Map<number, Promise<void>>();
  private line: Promise<unknown> = Promise.resolve();

  constructor(private readonly blobs: Blobs) {}

  async prepare(task: Task): Promise<void> {
    await this.ready(task);
  }

  /** One after the other, each after a look at what came meanwhile: whoever hung up is not computed for. */
  compute(task: Task): Promise<Computed> {
    const computed = this.line.then(turn).then(() => this.answer(task));
    this.line = computed.catch(() => undefined);
    return computed;
  }

  forget(job: number): void {
    this.loading.delete(job);
    this.loaded.get(job)?.free();
    this.loaded.delete(job);
  }

  private async answer(task: Task): Promise<Computed> {
    const { attempt, body } = task.unit;
    if (!body) throw new UnitError({ kind: "internal", message: "a unit of a model, which answers requests only" });
    task.signal.throwIfAborted();
    const model = await this.ready(task);
    const answer = timed(attempt, () => whole("ran the model", () => model.run(body)));
    return { bytes: pack([answer]), release: () => undefined };
  }

  /** What it resolves to must be used at once: models that are loaded later push others out. */
  private async ready(task: Task): Promise<Model> {
    const { job } = task.unit;
    for (;;) {
      const model = this.loaded.get(job);
      if (model) {
        this.loaded.delete(job);
        this.loaded.set(job, model);
        return model;
      }
      const loading = this.loading.get(job) ?? this.load(task);
      this.loading.set(job, loading);
      await loading.finally(() => this.loading.get(job) === loading && this.loading.delete(job));
      task.signal.throwIfAborted();
    }
  }

  private async load({ unit: { attempt, job, warms }, info }: Task): Promise<void> {
    const { model, bytes } = modelOf(info);
    // Without a signal: other requests wait for the same model.
    const file = await this.blobs.all(model);
    // The service left meanwhile, or left and came again.
    if (!this.loading.has(job) || this.loaded.has(job)) return;
    // In a Worker that replaced another a request loads it again: what ended in time then does so now.
    const load = () => whole("loaded the model", () => Model.load(file, bytes));
    this.loaded.set(job, warms ? timed(attempt, load) : load());
    for (const [oldest] of this.loaded) {
      if (this.loaded.size <= KEPT) break;
      this.forget(oldest);
    }
  }
}

/** Computes under the unit's time limit. */
function timed<T>(attempt: number, compute: () => T): T {
  say({ type: "clock", attempt });
  try {
    return compute();
  } finally {
    say({ type: "rest", attempt });
  }
}

/** Nothing can be computed any more: this Worker is to be replaced. */
let isBroken = false;

/** Notes if the module stops. `does` says what at. */
function whole<T>(does: string, compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    // What the module says itself is a plain object.
    if (!(error instanceof Error)) throw error;
    isBroken = true;
    throw new UnitError(stopped(String(error), does));
  }
}

/** A native node may do better in all cases. */
function stopped(error: string, does: string): UnitFailure {
  if (Model.panicked() !== undefined) return { kind: "unable", message: `the engine panicked when it ${does}` };
  // That is how Rust ends when there is no memory, in all browsers' words.
  if (/unreachable/i.test(error)) return { kind: "oom", message: "a module in a browser has at most 4 GiB" };
  return { kind: "unable", message: `this browser stopped the engine when it ${does}: ${error}` };
}

/** Hears all messages that are here already. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

function modelOf({ work }: BrainJob): OnnxWork {
  if ("model" in work) return work;
  throw new UnitError({ kind: "internal", message: `a model's unit of kind ${work.kind}` });
}

serve(
  async (blobs, wasm) => {
    await init({ module_or_path: wasm });
    return new ModelComputer(blobs);
  },
  () => isBroken,
);
