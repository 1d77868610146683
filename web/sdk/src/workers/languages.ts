/** What the Workers for language models share: they keep them loaded and speak, all conversations in turns. Between two goes
 * they hear who asks and who has hung up. */

import type { LanguageHeard } from "../../generated/llm/llm.js";
import type { LlmWork } from "../../generated/brain/brain.js";
import { SHARED_FROM } from "../constants.js";
import { type Blobs, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, type Task } from "./engine.js";
import { type Guard, timed, timedLater } from "./guard.js";
import { Kept } from "./kept.js";
import type { BrainJob, ToStage } from "./messages.js";
import { pack } from "./pack.js";
import { Reading } from "./reading.js";
import { heard } from "./turns.js";

/** A model that is loaded. */
export interface Model {
  readonly isIdle: boolean;
  ask(attempt: number, body: Uint8Array): void;
  chat(attempt: number, request: string, now: number, seed: number): void;
  leave(attempt: number): void;
  go(): LanguageHeard[] | Promise<LanguageHeard[]>;
  free(): void;
}

/** One that is being loaded. */
export interface Loading {
  wants(): Float64Array | undefined;
  give(bytes: Uint8Array): void;
  free(): void;
}

/** What computes. */
export interface LanguageEngine<M extends Model, L extends Loading> {
  /** For a page that talks to the model alone. */
  alone(size: number, context: number, memory: number): L | Promise<L>;
  of(work: Uint8Array): L | Promise<L>;
  finish(loading: L): M | Promise<M>;
  /** After each go: whether it will never compute again. */
  isLost?(model: M): boolean;
}

/** Parts of models, for crews. */
export interface Stages {
  hear(ask: ToStage, info: (job: number) => BrainJob | undefined): void;
}

/** Somebody who waits for the end of an answer. */
interface Waiting {
  job: number;
  end: (computed: Computed) => void;
  fail: (error: unknown) => void;
}

export class LanguageComputer<M extends Model, L extends Loading> implements Computer {
  private readonly kept = new Kept<M>((task, isWanted) => this.load(task, isWanted));
  private readonly waiting = new Map<number, Waiting>();
  private isGoing = false;
  /** Where crews may keep parts of models here. */
  stages?: Stages;

  constructor(
    private readonly blobs: Blobs,
    private readonly guard: Guard,
    private readonly engine: LanguageEngine<M, L>,
  ) {}

  stage(ask: ToStage, info: (job: number) => BrainJob | undefined): void {
    this.stages?.hear(ask, info);
  }

  async prepare(task: Task): Promise<void> {
    await this.kept.ready(task);
  }

  async compute(task: Task): Promise<Computed> {
    const { unit: { attempt, job, body, chat }, signal } = task;
    const language = await this.kept.ready(task);
    if (body) this.guard.whole("took a request", () => language.ask(attempt, body));
    else if (chat !== undefined) this.guard.whole("took a request", () => language.chat(attempt, chat, Date.now() / 1000, seed()));
    else throw new UnitError({ kind: "internal", message: "a unit of a language model, which answers requests" });
    return new Promise((end, fail) => {
      this.waiting.set(attempt, { job, end, fail });
      const leave = () => this.leave(attempt, job, signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      void this.speak();
    });
  }

  forget(job: number): void {
    for (const [attempt, { job: own }] of this.waiting) {
      if (own === job) this.leave(attempt, job, new UnitError({ kind: "lost", message: "the model has left" }));
    }
    this.kept.forget(job);
  }

  private leave(attempt: number, job: number, why: unknown): void {
    const waiting = this.waiting.get(attempt);
    if (!waiting) return;
    this.waiting.delete(attempt);
    const language = this.guard.isBroken ? undefined : this.kept.all.find(([own]) => own === job)?.[1];
    language?.leave(attempt);
    waiting.fail(why);
  }

  /** Goes on as long as anybody waits. */
  private async speak(): Promise<void> {
    if (this.isGoing) return;
    this.isGoing = true;
    try {
      for (;;) {
        await heard();
        const busy = this.kept.all.filter(([, language]) => !language.isIdle);
        if (busy.length === 0) return;
        for (const [job, language] of busy) await this.go(job, language);
      }
    } catch (error) {
      for (const { fail } of this.waiting.values()) fail(error);
      this.waiting.clear();
    } finally {
      this.isGoing = false;
    }
  }

  private async go(job: number, language: M): Promise<void> {
    // One that was awaited before it may have left.
    const isKept = () => this.kept.all.some(([, kept]) => kept === language);
    if (!isKept()) return;
    // One of them has the clock: a go that does not end is ended with the Worker.
    const [attempt = 0] = [...this.waiting].find(([, { job: own }]) => own === job) ?? [];
    const all = await timedLater(attempt, () => this.guard.later("computed", () => language.go()));
    if (isKept() && this.engine.isLost?.(language)) this.guard.isBroken = true;
    for (const one of all) this.hear(one);
  }

  private hear({ number, bytes, said, done, failure }: LanguageHeard): void {
    const waiting = this.waiting.get(number);
    if (!waiting) return;
    if (said) say({ type: "said", attempt: number, part: said });
    if (!done && !failure) {
      if (bytes) say({ type: "part", attempt: number, bytes }, [bytes.buffer]);
      return;
    }
    this.waiting.delete(number);
    if (failure) waiting.fail(new UnitError(failure));
    else waiting.end({ bytes: pack([bytes ?? new Uint8Array(0)]), release: () => undefined });
  }

  /** A tensor at a time. */
  private async load({ unit: { attempt, job, warms }, info }: Task, isWanted: () => boolean): Promise<M | undefined> {
    const { model, bytes: work, alone } = languageOf(info);
    const within = <T>(compute: () => T) => (warms ? timed(attempt, compute) : compute());
    const onBytes = (bytes: number) => say({ type: "loading", job, bytes });
    // A page is no node: nobody keeps pieces for it.
    if (alone) await this.blobs.shelve(model, onBytes);
    const { engine } = this;
    const open = () => (alone ? engine.alone(model.size, alone.context, alone.memory) : engine.of(work));
    const loader = await this.guard.later("opened the model", open);
    if (!(await this.fill(job, model, loader, isWanted, onBytes, within))) return undefined;
    const finish = () => this.guard.later("loaded the model", () => engine.finish(loader));
    return warms ? timedLater(attempt, finish) : finish();
  }

  /** Gives a loader all it wants. Says whether it is still wanted; one that is not, or that failed, is freed. */
  async fill(
    job: number,
    model: LlmWork["model"],
    loader: Loading,
    isWanted: () => boolean,
    onBytes: (bytes: number) => void = () => undefined,
    within: <T>(compute: () => T) => T = (compute) => compute(),
  ): Promise<boolean> {
    const reading = new Reading(model.size, (from, to) => this.range(job, model, from, to));
    try {
      for (let wants = loader.wants(); wants; wants = loader.wants()) {
        const [from = 0, to = 0] = wants;
        const part = await reading.range(from, to);
        if (!isWanted()) {
          loader.free();
          return false;
        }
        within(() => this.guard.whole("loaded the model", () => loader.give(part)));
        onBytes(to);
      }
    } catch (error) {
      if (!this.guard.isBroken) loader.free();
      throw error;
    }
    return true;
  }

  /** Small files have no pieces that could be checked one by one. */
  private async range(job: number, model: LlmWork["model"], from: number, to: number): Promise<Uint8Array<ArrayBuffer>> {
    if (model.size >= SHARED_FROM) return this.blobs.range(job, model, from, to);
    return new Uint8Array(await this.blobs.whole(job, model), from, to - from);
  }
}

/** Of a page that talks to the model alone: tokens of the conversation, and bytes that it takes. */
interface Alone {
  alone?: { context: number; memory: number };
}

/** For who brings none. */
function seed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

function languageOf({ work }: BrainJob): LlmWork & Alone {
  if (work.kind === "llm" && "model" in work) return work;
  throw new UnitError({ kind: "internal", message: `a language model's unit of kind ${work.kind}` });
}
