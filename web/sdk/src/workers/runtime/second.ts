/** A model's second engine: onnxruntime-web, loaded beside the built-in one, timed with what is asked, and kept to if it is
 * faster. */

import { type Model, Reliance, Trial } from "../../../generated/onnx/onnx.js";
import type { Turns } from "../turns.js";
import type { Ran, Runtime } from "./runtime.js";

/** A larger model stays with the built-in engine: while both have it, a tab holds it three times. */
const LARGEST_FILE = 256 * 2 ** 20;
/** Runs before any is timed, and the time after which there are no more of them: browsers compile a module again, better, while
 * it runs. */
const WARM_RUNS = 4;
const WARM_MS = 1_500;
/** Requests in a row that it may fail at before the model is left to the built-in engine. */
const MOST_FAILS = 3;
/** How long a run may take at most: no model that anybody waits for takes longer. */
const LONGEST_MS = 60_000;

/** How long a run that is only timed keeps requests waiting. It goes on behind them. */
const HOLDS_MS = 1_000;

/** `trying`: loaded and timed, while the built-in engine answers. `left`: the built-in engine answers for good. */
type State = "trying" | "kept" | "left";

export interface About {
  /** The model's, for people. */
  name: string;
  size: number;
  /** Reads the model's file again. */
  read: () => Promise<Uint8Array<ArrayBuffer>>;
}

export class Second {
  private state: State = "trying";
  private readonly trial = new Trial();
  /** The model's number in the runtime, while it is loaded there. */
  private number: number | undefined;
  /** What is asked to time it: packed tensors that somebody asked. */
  private sample: Uint8Array<ArrayBuffer> | undefined;
  private isTiming = false;
  private readonly reliance = new Reliance();
  private fails = 0;
  private isFreed = false;

  constructor(
    private readonly runtime: Runtime,
    private readonly turns: Turns,
    private readonly model: Model,
    private readonly about: About,
  ) {}

  /** Loads the file, of which nothing is left here. */
  async load(file: Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.about.size > LARGEST_FILE || !this.runtime.isPossible) return this.leave();
    try {
      const number = await this.runtime.load(file);
      if (this.state === "left") return this.runtime.drop(number);
      this.number = number;
      await this.time();
    } catch (error) {
      this.say(`onnxruntime-web does not run it: ${words(error)}`);
      // Another try comes with the runtime's next one.
      if (this.number === undefined) this.leave();
    }
  }

  /** Whether it is to be asked. */
  get isKept(): boolean {
    return this.state === "kept" && this.number !== undefined;
  }

  get name(): string {
    return this.runtime.name;
  }

  async run(request: Uint8Array): Promise<Ran> {
    if (this.number === undefined) throw new Error("onnxruntime-web is not there");
    const { byteLength } = request;
    const began = performance.now();
    const ran = await this.runtime.run(this.number, alone(request), this.reliance.limit(byteLength, LONGEST_MS));
    if (!this.isFreed) this.reliance.took(performance.now() - began, byteLength);
    this.fails = 0;
    return ran;
  }

  /** It gave no answer to a request, and the built-in engine was asked. */
  failed(error: unknown): void {
    this.fails += 1;
    this.say(`the built-in engine answered, because onnxruntime-web did not: ${words(error)}`);
    if (this.fails >= MOST_FAILS) this.leave();
  }

  /** Whether it is to see what is asked. */
  get wantsSample(): boolean {
    return this.state === "trying" && !this.sample;
  }

  /** The built-in engine answered a request, in so many milliseconds. */
  saw(request: Uint8Array | undefined, took: number): void {
    if (this.state !== "trying") return;
    this.trial.took(false, took);
    if (request && !this.sample) {
      const asked = this.model.ask(request);
      this.sample = alone(asked.takeMade() ?? request.slice());
      asked.free();
      void this.time();
    }
    this.decide();
  }

  /** The runtime is gone, with all its models. It is opened again a few times. */
  async lost(): Promise<void> {
    if (this.number === undefined || this.state === "left") return;
    this.number = undefined;
    if (!this.runtime.isPossible) return this.leave();
    const file = await this.about.read().catch(() => undefined);
    if (file && this.number === undefined) await this.load(file);
  }

  free(): void {
    this.leave();
    this.isFreed = true;
    this.trial.free();
    this.reliance.free();
  }

  private async time(): Promise<void> {
    if (this.isTiming || this.number === undefined || !this.sample) return;
    this.isTiming = true;
    const began = performance.now();
    for (let runs = 0; runs < WARM_RUNS && performance.now() - began < WARM_MS; runs++) await this.timed();
    while (this.state === "trying" && this.trial.wants(true)) {
      const took = await this.timed();
      if (this.state === "trying") this.trial.took(true, took);
    }
    this.isTiming = false;
    this.decide();
  }

  /** Milliseconds of a run, with the way there and back; nothing if there was no answer. Whoever asks something goes first. */
  private async timed(): Promise<number | undefined> {
    const took = await this.turns.take(false, async () => {
      const running = this.timedRun();
      await Promise.race([running, new Promise((resolve) => setTimeout(resolve, HOLDS_MS))]);
      return { running };
    });
    return took.running;
  }

  private async timedRun(): Promise<number | undefined> {
    if (this.state !== "trying" || !this.sample) return undefined;
    const began = performance.now();
    try {
      await this.run(this.sample);
    } catch (error) {
      this.say(`onnxruntime-web gave no answer: ${words(error)}`);
      return undefined;
    }
    return performance.now() - began;
  }

  private decide(): void {
    if (this.state !== "trying" || this.isTiming || this.trial.isSecond === undefined) return;
    const isFaster = this.trial.isSecond && this.number !== undefined;
    this.say(`${isFaster ? this.name : "the built-in engine"} answers from now on (${this.trial.words()})`);
    if (!isFaster) return this.leave();
    this.state = "kept";
    this.sample = undefined;
    this.model.rest();
  }

  private leave(): void {
    this.state = "left";
    this.sample = undefined;
    if (this.number !== undefined) this.runtime.drop(this.number);
    this.number = undefined;
  }

  private say(what: string): void {
    console.info(`model ${this.about.name}: ${what}`);
  }
}

/** Bytes that are all of their buffer: a message copies the whole of it. */
function alone(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone = bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
  return isAlone ? (bytes as Uint8Array<ArrayBuffer>) : bytes.slice();
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
