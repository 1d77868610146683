/** An ONNX model in this page: its file is fetched once and kept by the browser. */

import type { ModelInfo } from "../api/answers.js";
import { type Engine, type Origin, PageEngine } from "./page-engine.js";

export type { Origin };

/** Bytes before the one answer of a result: its length (`workers/pack.ts`). */
const LENGTH = 4;
/** What no run takes that ends at all: then the Worker is ended. */
const LONGEST_RUN_MS = 120_000;

export interface LocalAnswer {
  packed: Uint8Array<ArrayBuffer>;
  /** Milliseconds in the model. */
  took: number;
  /** The engine that answered. */
  by: string;
}

export class Local {
  private constructor(private readonly engine: PageEngine) {}

  /** Loads the model. Fails with the code `local_unable` if this browser cannot. */
  static async open(info: ModelInfo, origin: Origin, onLoading: (loaded: number) => void): Promise<Local> {
    // Without bytes the model's file says what it takes and gives.
    const work = { kind: "onnx", bytes: new Uint8Array(0), model: info.file, parts: [], inputs: [] };
    const engine: Engine = { worker: "onnx-worker", wasm: `${origin.assets}/onnx_bg.wasm`, work };
    return new Local(await PageEngine.open(engine, origin, onLoading));
  }

  /** Whether it can be asked. */
  get isOpen(): boolean {
    return this.engine.isOpen;
  }

  /** Packed tensors in, packed tensors out. A run that nobody waits for any more goes on until it ends. */
  async run(body: Uint8Array<ArrayBuffer>): Promise<LocalAnswer> {
    const late = setTimeout(() => this.engine.end(`a run did not end within ${LONGEST_RUN_MS / 1000} s`), LONGEST_RUN_MS);
    try {
      const { result, took, by = "" } = await this.engine.ask({ body }, { transfer: [body.buffer] }).done;
      return { packed: "inline" in result ? result.inline.subarray(LENGTH) : new Uint8Array(0), took, by };
    } finally {
      clearTimeout(late);
    }
  }

  close(): void {
    this.engine.close();
  }
}
