/** An engine Worker for a page alone, the one that tabs of the pool have too: it keeps one model, which the page asks. Nothing of
 * what is asked leaves the device. */

import { ShoalError } from "../http.js";
import { importable } from "../join/places.js";
import { usualThreads } from "../workers/runtime/words.js";
import type { BrainJob, FromEngine, SaidPart, ToEngine, UnitFailure, UnitResult, UnitSpan } from "../workers/messages.js";

/** The only one of its Worker. */
const JOB = 1;

/** Where the coordinator and its files are, and what opens the door. */
export interface Origin {
  base: string;
  key: string;
  assets: string;
}

/** What an engine runs: as much of a job as its Worker looks at. */
export interface Engine {
  /** The names of its Worker's file, without the end. */
  worker: string;
  /** Where its module is. */
  wasm: string;
  work: object & { kind: string };
}

/** What is asked of a model. */
export type Question = Pick<UnitSpan, "body" | "chat" | "warms">;

export interface AskOptions {
  transfer?: Transferable[];
  /** Hears some words of an answer. */
  onSaid?: (part: SaidPart) => void;
}

export interface Answered {
  result: UnitResult;
  /** Milliseconds in the model. */
  took: number;
  /** Which engine answered, where there are several. */
  by?: string;
}

interface Waiting {
  resolve: (answer: Answered) => void;
  reject: (error: unknown) => void;
  onSaid: AskOptions["onSaid"];
}

export class PageEngine {
  private readonly waiting = new Map<number, Waiting>();
  private attempts = 0;
  private ended: ShoalError | undefined;

  private constructor(
    private readonly worker: Worker,
    private readonly release: () => void,
    private readonly onLoading: (loaded: number) => void,
  ) {
    worker.onmessage = ({ data }: MessageEvent<FromEngine>) => this.hear(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.end(event.message || "its code could not be loaded");
    };
  }

  /** Loads the model. Fails with the code `local_unable` if this browser cannot. */
  static async open(engine: Engine, { base, key, assets }: Origin, onLoading: (loaded: number) => void): Promise<PageEngine> {
    const { url, release } = importable(`${assets}/${engine.worker}.js`);
    const hashing = await moduleAt(`${assets}/brain_bg.wasm`);
    const opened = new PageEngine(new Worker(url, { type: "module" }), release, onLoading);
    const means = { threads: usualThreads(), gpu: true, memory: Infinity };
    opened.tell({ type: "open", base, wasm: engine.wasm, hashing, session: key, blobs: "/api/v1/blobs", means });
    const info = { work: engine.work, engine: engine.work.kind } as unknown as BrainJob;
    opened.tell({ type: "job", job: JOB, info });
    try {
      await opened.ask({ warms: true }).done;
      return opened;
    } catch (error) {
      opened.close();
      throw error;
    }
  }

  /** Whether it can be asked. */
  get isOpen(): boolean {
    return this.ended === undefined;
  }

  /** `leave`: nobody waits for the answer any more. */
  ask(question: Question, { transfer = [], onSaid }: AskOptions = {}): { done: Promise<Answered>; leave: (why: unknown) => void } {
    if (this.ended) return { done: Promise.reject(this.ended), leave: () => undefined };
    const attempt = ++this.attempts;
    const done = new Promise<Answered>((resolve, reject) => {
      this.waiting.set(attempt, { resolve, reject, onSaid });
      this.tell({ type: "run", unit: { attempt, job: JOB, start: 0, len: 0, ...question } }, transfer);
    });
    const leave = (why: unknown) => {
      this.taken(attempt)?.reject(why);
      if (this.isOpen) this.tell({ type: "abort", attempt });
    };
    return { done, leave };
  }

  close(): void {
    this.end("the model was closed");
  }

  end(why: string): void {
    if (this.ended) return;
    this.ended = new ShoalError(0, "local_unable", `this browser cannot run the model: ${why}`);
    this.worker.terminate();
    this.release();
    for (const { reject } of this.waiting.values()) reject(this.ended);
    this.waiting.clear();
  }

  private hear(said: FromEngine): void {
    switch (said.type) {
      case "broken":
        return this.end(said.message);
      case "need":
        // Nobody else is asked: this page is no node.
        return this.tell({ type: "had", hash: said.blob.hash });
      case "seek": {
        const pieces = Array.from({ length: said.end - said.first }, (_, at) => said.first + at);
        return this.tell({ type: "stream", seek: said.seek, pieces });
      }
      case "loading":
        return this.onLoading(said.bytes);
      case "said":
        return this.waiting.get(said.attempt)?.onSaid?.(said.part);
      case "done":
        return this.taken(said.attempt)?.resolve({ result: said.result, took: said.took, ...(said.by ? { by: said.by } : {}) });
      case "failed":
        this.taken(said.attempt)?.reject(errorOf(said.failure));
        if (said.fatal) this.end(said.failure.message);
        return;
      default:
        // Clocks and what other kinds of work say.
        return;
    }
  }

  private taken(attempt: number): Waiting | undefined {
    const waiting = this.waiting.get(attempt);
    this.waiting.delete(attempt);
    return waiting;
  }

  private tell(message: ToEngine, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }
}

/** What the model itself refuses, it refuses everywhere. */
function errorOf({ kind, message }: UnitFailure): ShoalError {
  if (kind === "model") return new ShoalError(0, "bad_input", message);
  return new ShoalError(0, kind === "fetch" ? "unreachable" : "local_unable", `this browser cannot run the model: ${message}`);
}

async function moduleAt(url: string): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compileStreaming(fetch(url));
  } catch (error) {
    throw new ShoalError(0, "unreachable", `cannot load ${url}: ${String(error)}`);
  }
}
