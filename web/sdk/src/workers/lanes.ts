/** The engine Workers of a node, kernels on one, models on another and programs on more, and what is offered of them.
 * A GPU comes and goes; the offer follows it. */

import { Engines, type RuntimeOffer } from "../../generated/brain/brain.js";
import { Lane, type LaneConfig } from "./lane.js";
import { type Means, usualThreads } from "./runtime/words.js";
import type { Offer, Places, ToStage, UnitSpan } from "./messages.js";

type Own = "engines" | "worker" | "wasm" | "base" | "onHealth" | "means" | "onRuntime";
/** What all kinds share. `onGpu`: the GPU stopped answering (why), or answers again. `onModels`: the same of models. */
export type LanesConfig = Omit<LaneConfig, Own> & { onGpu: (problem: string | undefined) => void; onModels: () => void };

/** A lane whose Worker is open only while it keeps something ready, because a module never gives memory back. */
class Keeping {
  readonly lane: Lane;
  /** Services and jobs whose models are kept, and the memory each takes. */
  private readonly jobs = new Map<number, number>();
  /** Crews that keep parts of models here. */
  private readonly crews = new Set<number>();
  private problem: string | undefined;
  private isLent = false;

  constructor(
    private readonly what: string,
    config: Omit<LaneConfig, "engines" | "onHealth">,
    onNews: () => void,
  ) {
    // One Worker for all: each one more would hold every model once more.
    const engines = new Engines(true);
    this.lane = new Lane({ ...config, engines, onHealth: (problem) => this.learn(problem) && onNews() });
  }

  /** Whether models can run, as far as is known: the Worker opens for the first one, because its code is large. */
  get isAble(): boolean {
    return this.problem === undefined;
  }

  lend(isLent: boolean): void {
    this.isLent = isLent;
    this.limit();
  }

  /** Bytes of memory that they take together. */
  get takes(): number {
    return [...this.jobs.values()].reduce((sum, takes) => sum + takes, 0);
  }

  run(unit: UnitSpan, takes: number): void {
    this.jobs.set(unit.job, takes);
    this.limit();
    this.lane.run(unit);
  }

  stage(ask: ToStage, job: number, transfer: Transferable[]): void {
    if (ask.type === "stage") this.crews.add(ask.crew);
    this.limit();
    this.lane.stage(ask, job, transfer);
    if (ask.type === "unstage" && this.crews.delete(ask.crew)) this.limit();
  }

  forget(job: number): void {
    this.lane.forget(job);
    if (this.jobs.delete(job)) this.limit();
  }

  /** One that did not open is tried again. */
  private limit(): void {
    const isWanted = this.jobs.size > 0 || this.crews.size > 0 || this.problem !== undefined;
    this.lane.limit(isWanted && this.isLent ? 1 : 0);
  }

  /** Whether this is news. */
  private learn(problem: string | undefined): boolean {
    if (problem !== undefined) console.error(`${this.what} cannot run: ${problem}`);
    const isNews = (problem === undefined) !== (this.problem === undefined);
    this.problem = problem;
    this.limit();
    return isNews;
  }
}

export class Lanes {
  readonly gpu: Lane;
  private readonly cpu: Lane;
  private readonly models: Keeping;
  private readonly languages: Keeping;
  private readonly languagesOnGpu: Keeping;
  /** Of the GPU: nothing is known before it was opened and probed, then its numeric class or what is wrong with it. */
  private isOpened = false;
  private problem: string | undefined;
  private class: string | undefined;
  /** What the models' Worker was told. */
  private told: Means | undefined;
  /** What runs models beside the built-in engine, once it was loaded. */
  private runtime: RuntimeOffer | undefined;

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
    const { onnxWorker, onnxWasm, llmWorker, llmWasm, llmGpuWorker, llmGpuWasm } = places;
    const onRuntime = (runtime: RuntimeOffer | undefined) => {
      if (runtime === this.runtime) return;
      this.runtime = runtime;
      onModels();
    };
    const means = () => this.means;
    this.models = new Keeping("models", { ...shared, worker: onnxWorker, wasm: onnxWasm, means, onRuntime }, onModels);
    this.languages = new Keeping("language models", { ...shared, worker: llmWorker, wasm: llmWasm }, onModels);
    this.languagesOnGpu = new Keeping("language models on the GPU", { ...shared, worker: llmGpuWorker, wasm: llmGpuWasm }, onModels);
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
    for (const keeping of this.keeping) keeping.lend(offer.cpuSlots > 0 && (keeping !== this.languagesOnGpu || offer.gpu !== undefined));
    this.tellMeans();
  }

  /** Whether there is nothing to wait for before it is said what can be offered. */
  get isKnown(): boolean {
    return this.isOpened || !this.lends.gpu;
  }

  /** What can be offered now of what the donor lends: a GPU only if it answers, models only if their Worker opens. */
  able(): Offer {
    const { gpu, ...rest } = this.lends;
    const able: Offer = { ...rest, onnx: this.models.isAble, llm: this.languages.isAble };
    if (gpu && this.isOpened && this.problem === undefined) [able.gpu, able.llmGpu] = [gpu, this.languagesOnGpu.isAble];
    if (this.class !== undefined) able.class = this.class;
    if (this.runtime) able.runtime = this.runtime;
    return able;
  }

  run(unit: UnitSpan): void {
    const { engine, takes = 0 } = this.config.info(unit.job) ?? {};
    switch (engine) {
      case "wgsl":
        return this.gpu.run(unit);
      case "onnx":
        this.tellMeans();
        return this.models.run(unit, takes);
      case "llm":
        this.languages.run(unit, takes);
        return this.tellMeans();
      case "llm-gpu":
        this.languagesOnGpu.run(unit, takes);
        return this.tellMeans();
      case "wasi":
      case undefined:
        return this.cpu.run(unit);
    }
  }

  /** For parts of a model that a crew keeps ready. */
  stage(ask: ToStage, job: number, transfer: Transferable[]): void {
    const keeping = this.config.info(job)?.engine === "llm" ? this.languages : this.models;
    if (keeping === this.models) this.tellMeans();
    keeping.stage(ask, job, transfer);
  }

  abort(attempt: number): void {
    for (const lane of this.all) lane.abort(attempt);
  }

  forget(job: number): void {
    for (const lane of [this.gpu, this.cpu, ...this.keeping]) lane.forget(job);
    this.tellMeans();
  }

  sessionChanged(): void {
    for (const lane of this.all) lane.sessionChanged();
  }

  close(): void {
    for (const lane of this.all) lane.close();
  }

  /** What models may use of what is lent: its memory without what programs and language models take just now. */
  private get means(): Means {
    const { cpuSlots, gpu, memory } = this.lends;
    const programs = this.cpu.running.reduce((sum, job) => sum + (this.config.info(job)?.takes ?? 0), 0);
    return {
      threads: Math.max(1, Math.min(cpuSlots, usualThreads())),
      gpu: gpu !== undefined && !gpu.software,
      memory: Math.max(0, memory - programs - this.languages.takes - this.languagesOnGpu.takes),
    };
  }

  /** Each time before a model runs: what else takes memory comes and goes. */
  private tellMeans(): void {
    const { threads, gpu, memory } = this.means;
    const { told } = this;
    if (told && told.threads === threads && told.gpu === gpu && told.memory === memory) return;
    this.told = { threads, gpu, memory };
    this.models.lane.meansChanged();
  }

  private get all(): Lane[] {
    return [this.gpu, this.cpu, this.models.lane, this.languages.lane, this.languagesOnGpu.lane];
  }

  private get keeping(): Keeping[] {
    return [this.models, this.languages, this.languagesOnGpu];
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
}
