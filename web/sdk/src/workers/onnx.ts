/** The Worker for models: it keeps them loaded and answers one request after the other. Units of many items are run in
 * between. A run that does not end is ended with its Worker. The built-in engine is here; onnxruntime-web is in a Worker below
 * this one, and answers for the models that it is faster for. */

import init, { Lent, Many, Model } from "../../generated/onnx/onnx.js";
import type { OnnxWork, RuntimeOffer } from "../../generated/brain/brain.js";
import { type Blobs, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import { Guard, timed } from "./guard.js";
import { Kept } from "./kept.js";
import type { BrainJob, KernelInput, ToStage } from "./messages.js";
import { pack } from "./pack.js";
import { Runtime } from "./runtime/runtime.js";
import { Second } from "./runtime/second.js";
import type { Means } from "./runtime/words.js";
import { Stages } from "./stages.js";
import { Turns } from "./turns.js";

/** As the SDK calls the engine that is built in. */
const BUILT_IN = "rten";

/** A model with the engines that run it. */
class Served {
  constructor(
    readonly model: Model,
    readonly second: Second,
  ) {}

  free(): void {
    this.second.free();
    this.model.free();
  }
}

interface Answer {
  bytes: Uint8Array;
  by: string;
}

class ModelComputer implements Computer {
  private readonly kept = new Kept<Served>((task, isWanted) => this.load(task, isWanted));
  private readonly turns = new Turns();
  private readonly stages: Stages;
  private readonly runtime: Runtime;
  private readonly lent: Lent;

  constructor(
    private readonly blobs: Blobs,
    assets: string,
    means: Means,
  ) {
    this.lent = new Lent(means.memory);
    this.stages = new Stages(blobs, this.lent, guard.whole, () => guard.isBroken);
    const onNews = (offer?: RuntimeOffer) => say(offer ? { type: "runtime", offer } : { type: "runtime" });
    this.runtime = new Runtime(assets, means, onNews, () => {
      for (const [, { second }] of this.kept.all) void second.lost();
    });
  }

  stage(ask: ToStage, info: (job: number) => BrainJob | undefined): void {
    this.stages.hear(ask, info);
  }

  lend(means: Means): void {
    if (!guard.isBroken) this.lent.set(means.memory);
    this.runtime.lend(means);
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
    const { bytes, by } = await this.turn(task, async (served) => {
      const answer = await this.bySecond(task, served, body);
      return answer ?? { bytes: this.byBuiltIn(task, served, (model) => model.run(body), () => body), by: BUILT_IN };
    });
    return { bytes: pack([bytes]), by, release: () => undefined };
  }

  /** A run at a time, so that nobody who asks something waits for the whole unit. */
  private async rows(task: Task): Promise<Computed> {
    const { start, len } = task.unit;
    const many = new Many(start, len);
    try {
      for (const input of await this.inputs(task)) many.add(input);
      while (many.goesOn) await this.turn(task, (served) => this.step(task, served, many));
    } catch (error) {
      many.free();
      throw error;
    }
    return { bytes: many.intoRows() as Uint8Array<ArrayBuffer>, release: () => undefined };
  }

  private async step(task: Task, served: Served, many: Many): Promise<void> {
    const next = () => guard.whole("prepared a run", () => served.model.next(many));
    const answer = served.second.isKept ? await this.bySecond(task, served, next()) : undefined;
    if (answer) return guard.whole("took an answer", () => served.model.took(many, answer.bytes));
    const request = served.second.wantsSample ? next() : undefined;
    this.byBuiltIn(task, served, (model) => model.step(many), () => request);
  }

  /** Nothing if the built-in engine is to answer. What is wrong with a request is thrown. */
  private async bySecond({ unit: { attempt } }: Task, { model, second }: Served, request: Uint8Array): Promise<Answer | undefined> {
    if (!second.isKept) return undefined;
    const asked = guard.whole("looked at a request", () => model.ask(request));
    say({ type: "clock", attempt });
    try {
      const { answer } = await second.run(asked.takeMade() ?? request);
      return { bytes: guard.whole("looked at an answer", () => model.told(asked, answer)), by: second.name };
    } catch (error) {
      if (guard.isBroken) throw error;
      second.failed(error);
      return undefined;
    } finally {
      say({ type: "rest", attempt });
      asked.free();
    }
  }

  /** `request`: what was asked, for whom that interests. */
  private byBuiltIn<T>(task: Task, { model, second }: Served, run: (model: Model) => T, request: () => Uint8Array | undefined): T {
    const began = performance.now();
    const answer = timed(task.unit.attempt, () => guard.whole("ran the model", () => run(model)));
    second.saw(request(), performance.now() - began);
    return answer;
  }

  /** What the unit's items have of each input. */
  private inputs({ unit: { job, start, len }, info, signal }: Task): Promise<Uint8Array[]> {
    const part = ({ blob, perItem = 0 }: KernelInput) =>
      this.blobs.range(job, blob, start * perItem, (start + len) * perItem, signal);
    return Promise.all(modelOf(info).inputs.map(part));
  }

  /** One after the other, each after a look at what came meanwhile: whoever hung up is not computed for, and requests go
   * before units. */
  private turn<T>(task: Task, compute: (served: Served) => Promise<T>): Promise<T> {
    return this.turns.take(task.unit.body !== undefined, async () => {
      task.signal.throwIfAborted();
      return compute(await this.kept.ready(task));
    });
  }

  private async load({ unit: { attempt, job, warms }, info }: Task, isWanted: () => boolean): Promise<Served | undefined> {
    const { model, bytes } = modelOf(info);
    const read = () => this.blobs.all(model, undefined, (bytes) => say({ type: "loading", job, bytes }));
    const file = await read();
    if (!isWanted()) return undefined;
    // In a Worker that replaced another a request loads it again: what ended in time then does so now.
    const load = () => guard.whole("loaded the model", () => Model.load(file, bytes, this.lent));
    const loaded = warms ? timed(attempt, load) : load();
    const second = new Second(this.runtime, this.turns, loaded, { name: info.name || model.hash.slice(0, 8), size: model.size, read });
    void second.load(file);
    return new Served(loaded, second);
  }
}

const guard = new Guard(() => Model.panicked());

function modelOf({ work }: BrainJob): OnnxWork {
  if ("parts" in work) return work;
  throw new UnitError({ kind: "internal", message: `a model's unit of kind ${work.kind}` });
}

serve(
  async (blobs, wasm, means = { threads: 1, gpu: false, memory: 0 }) => {
    await init({ module_or_path: wasm });
    // The files of the other engine are beside this one's.
    return new ModelComputer(blobs, new URL(".", wasm).href, means);
  },
  () => guard.isBroken,
);
