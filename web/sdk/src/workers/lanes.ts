/** The engine Workers of a node, kernels on one, models on another and programs on more, and what is offered of them.
 * A GPU comes and goes; the offer follows it. */

import { Engines } from "../../generated/brain/brain.js";
import { Lane, type LaneConfig } from "./lane.js";
import type { Offer, Places, ToStage, UnitSpan } from "./messages.js";

type Own = "engines" | "worker" | "wasm" | "base" | "onHealth";
/** What all kinds share. `onGpu`: the GPU stopped answering (why), or answers again. `onModels`: the same of models. */
export type LanesConfig = Omit<LaneConfig, Own> & { onGpu: (problem: string | undefined) => void; onModels: () => void };

export class Lanes {
  readonly gpu: Lane;
  private readonly cpu: Lane;
  private readonly onnx: Lane;
  /** Of the GPU: nothing is known before it was opened and probed, then its numeric class or what is wrong with it. */
  private isOpened = false;
  private problem: string | undefined;
  private class: string | undefined;
  /** Services whose models are kept, and why no model can be, if that is so. */
  private readonly models = new Set<number>();
  private modelProblem: string | undefined;
  /** Crews that keep parts of models here. */
  private readonly stages = new Set<number>();

  constructor(
    places: Places,
    private lends: Offer,
    private readonly config: LanesConfig,
  ) {
    const { onGpu, onModels, ...rest } = config;
    const shared = { ...rest, base: places.base };
    this.gpu = new Lane({
      ...shared,
      engines: new Engines(true),
      worker: places.gpuWorker,
      wasm: places.gpuWasm,
      onHealth: (problem, probed) => this.learn(problem, probed) && onGpu(problem),
    });
    this.cpu = new Lane({
      ...shared,
      engines: new Engines(false),
      worker: places.wasiWorker,
      wasm: "",
      onHealth: (problem) => problem && console.error(`programs cannot run: ${problem}`),
    });
    // One Worker for all: each one more would hold every model once more.
    this.onnx = new Lane({
      ...shared,
      engines: new Engines(true),
      worker: places.onnxWorker,
      wasm: places.onnxWasm,
      onHealth: (problem) => this.learnOfModels(problem) && onModels(),
    });
  }

  /** What the donor lends. */
  get lent(): Offer {
    return this.lends;
  }

  /** The donor lends this from now on. */
  lend(offer: Offer): void {
    this.lends = offer;
    this.cpu.limit(offer.cpuSlots);
    this.gpu.limit(offer.gpu ? 1 : 0);
    this.limitModels();
  }

  /** Whether there is nothing to wait for before it is said what can be offered. */
  get isKnown(): boolean {
    return this.isOpened || !this.lends.gpu;
  }

  /** What can be offered now of what the donor lends: a GPU only if it answers, models only if their Worker opens. It is
   * opened for the first one, because its code is large. */
  able(): Offer {
    const { gpu, ...rest } = this.lends;
    const able: Offer = { ...rest, onnx: this.modelProblem === undefined };
    if (gpu && this.isOpened && this.problem === undefined) able.gpu = gpu;
    if (this.class !== undefined) able.class = this.class;
    return able;
  }

  run(unit: UnitSpan): void {
    switch (this.config.info(unit.job)?.engine) {
      case "wgsl":
        return this.gpu.run(unit);
      case "onnx":
        this.models.add(unit.job);
        this.limitModels();
        return this.onnx.run(unit);
      case "wasi":
      case undefined:
        return this.cpu.run(unit);
    }
  }

  /** For parts of a model that a crew keeps ready. */
  stage(ask: ToStage, job: number, transfer: Transferable[]): void {
    if (ask.type === "stage") this.stages.add(ask.crew);
    this.limitModels();
    this.onnx.stage(ask, job, transfer);
    if (ask.type === "unstage" && this.stages.delete(ask.crew)) this.limitModels();
  }

  abort(attempt: number): void {
    for (const lane of this.all) lane.abort(attempt);
  }

  forget(job: number): void {
    for (const lane of this.all) lane.forget(job);
    if (this.models.delete(job)) this.limitModels();
  }

  sessionChanged(): void {
    for (const lane of this.all) lane.sessionChanged();
  }

  close(): void {
    for (const lane of this.all) lane.close();
  }

  private get all(): Lane[] {
    return [this.gpu, this.cpu, this.onnx];
  }

  /** A Worker that keeps no model ends, because a module never gives memory back. One that did not open is tried again. */
  private limitModels(): void {
    const isWanted = this.models.size > 0 || this.stages.size > 0 || this.modelProblem !== undefined;
    this.onnx.limit(isWanted && this.lends.cpuSlots > 0 ? 1 : 0);
  }

  /** Whether this is news. */
  private learn(problem: string | undefined, probed: string | undefined): boolean {
    const found = probed ?? this.class;
    const isNews = !this.isOpened || problem !== this.problem || found !== this.class;
    this.isOpened = true;
    this.problem = problem;
    this.class = found;
    return isNews;
  }

  /** Whether this is news. */
  private learnOfModels(problem: string | undefined): boolean {
    if (problem !== undefined) console.error(`models cannot run: ${problem}`);
    const isNews = (problem === undefined) !== (this.modelProblem === undefined);
    this.modelProblem = problem;
    this.limitModels();
    return isNews;
  }
}
