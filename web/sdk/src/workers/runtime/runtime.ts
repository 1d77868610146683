/** onnxruntime-web as the models' Worker sees it: in a Worker of its own, fetched when the first model wants it. If that Worker
 * ends, is missing or does not answer, whoever waits hears of it and the built-in engine answers. */

import { isSoftware } from "../../adapter.js";
import { Reliance } from "../../../generated/onnx/onnx.js";
import { importable } from "../../join/places.js";
import type { RuntimeOffer } from "../../../generated/brain/brain.js";
import type { FromRuntime, Means, ToRuntime } from "./words.js";

/** What fetching, compiling and loading a model may take: four megabytes over a slow line. */
const LOAD_MS = 120_000;
/** A GPU that hangs is none; a healthy one answers in a tenth of a second. */
const ADAPTER_MS = 5_000;

export interface Ran {
  answer: Uint8Array<ArrayBuffer>;
  /** Milliseconds in the model. */
  took: number;
}

interface Waiting<T> {
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

/** A Worker, and who waits for it. */
interface Seat {
  worker: Worker;
  release: () => void;
  loading: Map<number, Waiting<RuntimeOffer>>;
  running: Map<number, Waiting<Ran>>;
  models: Set<number>;
}

export class Runtime {
  private seat: Promise<Seat> | undefined;
  private readonly reliance = new Reliance();
  private numbers = 0;
  private offered: RuntimeOffer | undefined;

  constructor(
    /** Where its files are. */
    private readonly assets: string,
    private means: Means,
    /** It is there now, or not any more. */
    private readonly onNews: (offer: RuntimeOffer | undefined) => void,
    /** All its models are gone with it. */
    private readonly onGone: () => void,
  ) {}

  /** Whether it may be asked for at all. */
  get isPossible(): boolean {
    return this.reliance.goesOn;
  }

  /** As the node's list of engines calls it. */
  get name(): string {
    return this.offered?.webgpu ? "onnxruntime-web-webgpu" : "onnxruntime-web";
  }

  /** A GPU that is not lent any more is left at once. */
  lend(means: Means): void {
    const mustLeave = this.means.gpu && !means.gpu && this.offered?.webgpu;
    this.means = means;
    if (mustLeave) this.end(this.seat, "the GPU is not lent any more");
  }

  /** Loads a file and says its number. */
  async load(file: Uint8Array<ArrayBuffer>): Promise<number> {
    const opening = (this.seat ??= this.open());
    const seat = await opening.catch((error: unknown) => {
      this.broke(opening, words(error));
      throw error;
    });
    const model = ++this.numbers;
    seat.models.add(model);
    try {
      const loaded = new Promise<RuntimeOffer>((resolve, reject) => seat.loading.set(model, { resolve, reject }));
      tell(seat, { type: "load", model, file }, [file.buffer]);
      this.offer(await this.inTime(loaded, LOAD_MS, opening, "did not load the model"));
      return model;
    } catch (error) {
      this.drop(model);
      throw error;
    }
  }

  /** Runs a model. If there is no answer within so many milliseconds, the Worker is ended. */
  async run(model: number, request: Uint8Array<ArrayBuffer>, withinMs: number): Promise<Ran> {
    const opened = this.seat;
    const seat = await opened;
    if (!opened || !seat?.models.has(model)) throw new Error("this model is not loaded any more");
    const id = ++this.numbers;
    const ran = new Promise<Ran>((resolve, reject) => seat.running.set(id, { resolve, reject }));
    tell(seat, { type: "run", id, model, request });
    return this.inTime(ran, withinMs, opened, "did not answer");
  }

  /** Frees a model, and with the last one the Worker: its module never gives memory back. */
  drop(model: number): void {
    const opened = this.seat;
    void opened?.then((seat) => {
      if (!seat.models.delete(model)) return;
      tell(seat, { type: "drop", model });
      if (seat.models.size === 0) this.end(opened, "it is not needed any more");
    });
  }

  private async open(): Promise<Seat> {
    const kind = (await hasGpu(this.means)) ? "ort-webgpu" : "ort";
    const { url, release } = importable(`${this.assets}${kind}-worker.js`);
    const worker = new Worker(url, { type: "module" });
    const seat: Seat = { worker, release, loading: new Map(), running: new Map(), models: new Set() };
    worker.onmessage = ({ data }: MessageEvent<FromRuntime>) => hear(seat, data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.broke(this.seat, event.message || "its code could not be loaded");
    };
    const { threads } = this.means;
    tell(seat, { type: "open", glue: `${this.assets}${kind}.js`, wasm: `${this.assets}${kind}.wasm`, threads });
    return seat;
  }

  private offer(offer: RuntimeOffer | undefined): void {
    if (offer?.version === this.offered?.version && offer?.webgpu === this.offered?.webgpu) return;
    this.offered = offer;
    this.onNews(offer);
  }

  private broke(opened: Promise<Seat> | undefined, why: string): void {
    if (this.seat !== opened) return;
    this.reliance.broke();
    this.end(opened, why);
  }

  private end(opened: Promise<Seat> | undefined, why: string): void {
    if (!opened || this.seat !== opened) return;
    this.seat = undefined;
    void opened.then((seat) => {
      seat.worker.terminate();
      seat.release();
      const error = new Error(`onnxruntime-web: ${why}`);
      for (const { reject } of [...seat.loading.values(), ...seat.running.values()]) reject(error);
    }, () => undefined);
    this.offer(undefined);
    this.onGone();
  }

  private async inTime<T>(work: Promise<T>, ms: number, opened: Promise<Seat>, late: string): Promise<T> {
    const timer = setTimeout(() => this.broke(opened, `it ${late} within ${Math.round(ms / 1000)} s`), ms);
    return work.finally(() => clearTimeout(timer));
  }
}

function tell(seat: Seat, message: ToRuntime, transfer: Transferable[] = []): void {
  seat.worker.postMessage(message, transfer);
}

function hear({ loading, running }: Seat, said: FromRuntime): void {
  switch (said.type) {
    case "loaded":
      return taken(loading, said.model)?.resolve({ version: said.version, webgpu: said.webgpu });
    case "unable":
      return taken(loading, said.model)?.reject(new Error(said.message));
    case "ran":
      return taken(running, said.id)?.resolve(said);
    case "failed":
      return taken(running, said.id)?.reject(new Error(said.message));
  }
}

function taken<T>(waiting: Map<number, Waiting<T>>, id: number): Waiting<T> | undefined {
  const found = waiting.get(id);
  waiting.delete(id);
  return found;
}

/** The build for GPUs needs promises in WebAssembly; with a processor behind the GPU it would only be slower. */
async function hasGpu({ gpu }: Means): Promise<boolean> {
  if (!gpu || !("gpu" in navigator) || !("Suspending" in WebAssembly)) return false;
  const asked = navigator.gpu.requestAdapter({ powerPreference: "high-performance" }).catch(() => null);
  const late = new Promise<null>((resolve) => setTimeout(resolve, ADAPTER_MS, null));
  const adapter = await Promise.race([asked, late]);
  return adapter !== null && !isSoftware(adapter.info);
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
