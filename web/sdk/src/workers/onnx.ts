/** The Worker for models: it keeps them loaded and answers one request after the other. Units of many items are run in
 * between. A run that does not end is ended with its Worker. */

import init, { Many, Model } from "../../generated/onnx/onnx.js";
import type { OnnxWork } from "../../generated/brain/brain.js";
import { type Blobs, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import type { BrainJob, KernelInput, ToStage, UnitFailure } from "./messages.js";
import { pack } from "./pack.js";
import { Stages } from "./stages.js";
import { Turns } from "./turns.js";

/** Models loaded at a time, as in a native node: the coordinator places no more services here than the donor's memory
 * holds, so this is only a last resort. */
const KEPT = 16;

class ModelComputer implements Computer {
  /** The one used last comes last. */
  private readonly loaded = new Map<number, Model>();
  private readonly loading = new Map<number, Promise<void>>();
  private readonly turns = new Turns();
  private readonly stages: Stages;

  constructor(private readonly blobs: Blobs) {
    this.stages = new Stages(blobs, whole, () => isBroken);
  }

  stage(ask: ToStage, info: (job: number) => BrainJob | undefined): void {
    this.stages.hear(ask, info);
  }

  async prepare(task: Task): Promise<void> {
    await this.ready(task);
  }

  compute(task: Task): Promise<Computed> {
    return task.unit.body ? this.answer(task, task.unit.body) : this.rows(task);
  }

  forget(job: number): void {
    this.loading.delete(job);
    this.loaded.get(job)?.free();
    this.loaded.delete(job);
  }

  private async answer(task: Task, body: Uint8Array): Promise<Computed> {
    const answer = await this.turn(task, (model) => whole("ran the model", () => model.run(body)));
    return { bytes: pack([answer]), release: () => undefined };
  }

  /** A run at a time, so that nobody who asks something waits for the whole unit. */
  private async rows(task: Task): Promise<Computed> {
    const { start, len } = task.unit;
    const many = new Many(start, len);
    try {
      for (const input of await this.inputs(task)) many.add(input);
      while (many.goesOn) await this.turn(task, (model) => whole("ran the model", () => model.step(many)));
    } catch (error) {
      many.free();
      throw error;
    }
    return { bytes: many.intoRows() as Uint8Array<ArrayBuffer>, release: () => undefined };
  }

  /** What the unit's items have of each input. */
  private inputs({ unit: { job, start, len }, info, signal }: Task): Promise<Uint8Array[]> {
    const part = ({ blob, perItem = 0 }: KernelInput) =>
      this.blobs.range(job, blob, start * perItem, (start + len) * perItem, signal);
    return Promise.all(modelOf(info).inputs.map(part));
  }

  /** One after the other, each after a look at what came meanwhile: whoever hung up is not computed for, and requests go
   * before units. */
  private turn<T>(task: Task, compute: (model: Model) => T): Promise<T> {
    return this.turns.take(task.unit.body !== undefined, async () => {
      task.signal.throwIfAborted();
      const model = await this.ready(task);
      return timed(task.unit.attempt, () => compute(model));
    });
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
    const file = await this.blobs.all(model, undefined, (bytes) => say({ type: "loading", job, bytes }));
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
