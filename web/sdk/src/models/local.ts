/** A model in this page: its file is fetched once, kept by the browser, and run in an engine Worker of its own, the one
 * that tabs of the pool have too. Nothing of an input leaves the device. */

import type { ModelInfo } from "../api/answers.js";
import { ShoalError } from "../http.js";
import { importable } from "../join/places.js";
import type { BrainJob, FromEngine, ToEngine, UnitFailure } from "../workers/messages.js";

/** The only one of its Worker. */
const JOB = 1;
/** Bytes before the one answer of a result: its length (`workers/pack.ts`). */
const LENGTH = 4;
/** What no run takes that ends at all: then the Worker is ended. */
const LONGEST_RUN_MS = 120_000;

/** Where the coordinator and its files are, and what opens the door. */
export interface Origin {
  base: string;
  key: string;
  assets: string;
}

export interface LocalAnswer {
  packed: Uint8Array<ArrayBuffer>;
  /** Milliseconds in the model. */
  took: number;
}

interface Waiting {
  resolve: (answer: LocalAnswer) => void;
  reject: (error: unknown) => void;
}

export class Local {
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
  static async open(info: ModelInfo, { base, key, assets }: Origin, onLoading: (loaded: number) => void): Promise<Local> {
    const { url, release } = importable(`${assets}/onnx-worker.js`);
    const hashing = await moduleAt(`${assets}/brain_bg.wasm`);
    const local = new Local(new Worker(url, { type: "module" }), release, onLoading);
    const wasm = `${assets}/onnx_bg.wasm`;
    local.tell({ type: "open", base, wasm, hashing, session: key, blobs: "/api/v1/blobs" });
    local.tell({ type: "job", job: JOB, info: jobOf(info) });
    try {
      await local.ask({ warms: true });
      return local;
    } catch (error) {
      local.close();
      throw error;
    }
  }

  /** Whether it can be asked. */
  get isOpen(): boolean {
    return this.ended === undefined;
  }

  /** Packed tensors in, packed tensors out. A run that nobody waits for any more goes on until it ends. */
  run(body: Uint8Array<ArrayBuffer>): Promise<LocalAnswer> {
    const late = setTimeout(() => this.end(`a run did not end within ${LONGEST_RUN_MS / 1000} s`), LONGEST_RUN_MS);
    return this.ask({ body }, [body.buffer]).finally(() => clearTimeout(late));
  }

  close(): void {
    this.end("the model was closed");
  }

  private ask(what: { body: Uint8Array<ArrayBuffer> } | { warms: true }, transfer: Transferable[] = []): Promise<LocalAnswer> {
    if (this.ended) return Promise.reject(this.ended);
    const attempt = ++this.attempts;
    return new Promise((resolve, reject) => {
      this.waiting.set(attempt, { resolve, reject });
      this.tell({ type: "run", unit: { attempt, job: JOB, start: 0, len: 0, ...what } }, transfer);
    });
  }

  private hear(said: FromEngine): void {
    switch (said.type) {
      case "broken":
        return this.end(said.message);
      case "need":
        // Nobody else is asked: this page is no node.
        return this.tell({ type: "had", hash: said.blob.hash });
      case "loading":
        return this.onLoading(said.bytes);
      case "done":
        if (!("inline" in said.result)) return;
        this.waiting.get(said.attempt)?.resolve({ packed: said.result.inline.subarray(LENGTH), took: said.took });
        this.waiting.delete(said.attempt);
        return;
      case "failed":
        this.waiting.get(said.attempt)?.reject(errorOf(said.failure));
        this.waiting.delete(said.attempt);
        if (said.fatal) this.end(said.failure.message);
        return;
      default:
        // Clocks and what other kinds of work say.
        return;
    }
  }

  private end(why: string): void {
    if (this.ended) return;
    this.ended = new ShoalError(0, "local_unable", `this browser cannot run the model: ${why}`);
    this.worker.terminate();
    this.release();
    for (const { reject } of this.waiting.values()) reject(this.ended);
    this.waiting.clear();
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

/** As much of a job as an engine Worker looks at. Without bytes the model's file says what it takes and gives. */
function jobOf({ file }: ModelInfo): BrainJob {
  const work = { kind: "onnx", bytes: new Uint8Array(0), model: file };
  return { work, engine: "onnx" } as unknown as BrainJob;
}

async function moduleAt(url: string): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compileStreaming(fetch(url));
  } catch (error) {
    throw new ShoalError(0, "unreachable", `cannot load ${url}: ${String(error)}`);
  }
}
