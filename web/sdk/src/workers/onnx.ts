/** The Worker for models: it keeps them loaded and answers one request after the other. Units of many items are run in
 * between. A run that does not end is ended with its Worker. */

import init, { Many, Model } from "../../generated/onnx/onnx.js";
import type { OnnxWork } from "../../generated/brain/brain.js";
import { type Blobs, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import { Guard, timed } from "./guard.js";
import { Kept } from "./kept.js";
import type { BrainJob, KernelInput, ToStage } from "./messages.js";
import { pack } from "./pack.js";
import { Stages } from "./stages.js";
import { Turns } from "./turns.js";

class ModelComputer implements Computer {
  private readonly kept = new Kept<Model>((task, isWanted) => this.load(task, isWanted));
  private readonly turns = new Turns();
  private readonly stages: Stages;

  constructor(private readonly blobs: Blobs) {
    this.stages = new Stages(blobs, guard.whole, () => guard.isBroken);
  }

  stage(ask: ToStage, info: (job: number) => BrainJob | undefined): void {
    this.stages.hear(ask, info);
  }

  async prepare(task: Task): Promise<void> {
    await this.kept.ready(task);
  }

  compute(task: Task): Promise<Computed> {
    return task.unit.body ? this.answer(task, task.unit.body) : this.rows(task);
  }

  forget(job: number): void {
    this.kept.forget(job);
  }

  private async answer(task: Task, body: Uint8Array): Promise<Computed> {
    const answer = await this.turn(task, (model) => guard.whole("ran the model", () => model.run(body)));
    return { bytes: pack([answer]), release: () => undefined };
  }

  /** A run at a time, so that nobody who asks something waits for the whole unit. */
  private async rows(task: Task): Promise<Computed> {
    const { start, len } = task.unit;
    const many = new Many(start, len);
    try {
      for (const input of await this.inputs(task)) many.add(input);
      while (many.goesOn) await this.turn(task, (model) => guard.whole("ran the model", () => model.step(many)));
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
      const model = await this.kept.ready(task);
      return timed(task.unit.attempt, () => compute(model));
    });
  }

  private async load({ unit: { attempt, job, warms }, info }: Task, isWanted: () => boolean): Promise<Model | undefined> {
    const { model, bytes } = modelOf(info);
    const file = await this.blobs.all(model, undefined, (bytes) => say({ type: "loading", job, bytes }));
    if (!isWanted()) return undefined;
    // In a Worker that replaced another a request loads it again: what ended in time then does so now.
    const load = () => guard.whole("loaded the model", () => Model.load(file, bytes));
    return warms ? timed(attempt, load) : load();
  }
}

const guard = new Guard(() => Model.panicked());

function modelOf({ work }: BrainJob): OnnxWork {
  if ("parts" in work) return work;
  throw new UnitError({ kind: "internal", message: `a model's unit of kind ${work.kind}` });
}

serve(
  async (blobs, wasm) => {
    await init({ module_or_path: wasm });
    return new ModelComputer(blobs);
  },
  () => guard.isBroken,
);
