/** A model of the pool, run in this page or on a node. */

import type { ModelInfo, ModelPort } from "../api/answers.js";
import { type Http, ShoalError } from "../http.js";
import { checked, picturePort, shown, sidesOf } from "./check.js";
import { type Choice, choose, failed, type Known, type Loaded, measured, other, share, unknown } from "./choose.js";
import { Local } from "./local.js";
import { small, type Vision, visionOf } from "./picture.js";
import { infer } from "./remote.js";
import { type Asked, pack, unpack } from "./tensors.js";
import type {
  BoxesOptions,
  Detections,
  FoundBox,
  LoadOptions,
  ModelAnswer,
  ModelInput,
  ModelOptions,
  ModelRunOptions,
  PictureSource,
  Place,
  Ran,
  Tensor,
  Where,
} from "./types.js";

/** What the pool may take if there is no budget. */
const PATIENCE_MS = 30_000;
/** Boxes of the usual detector; a model whose output is open in this side has about as many. */
const USUAL_BOXES = 8_400;
/** Left, top, right, bottom, score, class. */
const BOX = 6;

/** An answer of one place. */
type Answer = Pick<ModelAnswer, "outputs"> & { ran: Omit<Ran, "why" | "ms"> & { ms: Omit<Ran["ms"], "total"> } };

export class Model {
  private local: Promise<Local> | undefined;
  private opened: Local | undefined;
  private last: Place | undefined;
  private known: Record<Place, Known> = { local: unknown(), remote: unknown() };
  private readonly progress = new Set<(loaded: number, total: number) => void>();

  constructor(
    private readonly http: Http,
    readonly info: ModelInfo,
    private readonly options: ModelOptions = {},
  ) {}

  get name(): string {
    return this.info.name;
  }

  get inputs(): readonly ModelPort[] {
    return this.info.inputs;
  }

  get outputs(): readonly ModelPort[] {
    return this.info.outputs;
  }

  /** Runs the model. What does not fit is refused before anything is sent. */
  async run(inputs: Readonly<Record<string, ModelInput>>, options: ModelRunOptions = {}): Promise<ModelAnswer> {
    const asked = checked(this.info.inputs, inputs, options.boxes);
    const where = options.where ?? this.options.where ?? "auto";
    const began = performance.now();
    const until = began + (options.budgetMs ?? Infinity);
    options.signal?.throwIfAborted();
    const { answer, why } = await this.runWhere(where, asked, until, options);
    const ms = { ...answer.ran.ms, total: performance.now() - began };
    return { outputs: answer.outputs, ran: { ...answer.ran, why, ms } };
  }

  /** What a detector finds in a picture, in its own pixels. */
  async detect(source: PictureSource, options: ModelRunOptions & BoxesOptions = {}): Promise<Detections> {
    const began = performance.now();
    const { port, vision, classes } = await this.detector();
    try {
      const picture = await small(source, sidesOf(port) ?? [1, 1], vision);
      const prepare = performance.now() - began;
      const { score, overlap, classes: count, ...rest } = options;
      const boxes: BoxesOptions = { ...(score === undefined ? {} : { score }), ...(overlap === undefined ? {} : { overlap }), ...(count === undefined ? {} : { classes: count }) };
      const { outputs, ran } = await this.run({ [port.name]: picture }, { ...rest, boxes });
      const { full } = picture;
      const [across, down] = [full.width / picture.width, full.height / picture.height];
      const found = rowsOf(Object.values(outputs)[0]).map(([left, top, right, bottom, score, kind]): FoundBox => {
        const [red = 0, green = 0, blue = 0] = vision.Classes.colour(kind);
        const box = [left * across, top * down, right * across, bottom * down] as const;
        return { class: kind, name: classes?.name(kind) ?? `class ${kind}`, score, box, colour: [red, green, blue] };
      });
      const ms = { ...ran.ms, prepare, total: performance.now() - began };
      return { boxes: found, ...full, ran: { ...ran, ms } };
    } finally {
      classes?.free();
    }
  }

  /** Throws if the model is no detector of things in pictures, with the reason. */
  async mustDetect(): Promise<void> {
    (await this.detector()).classes?.free();
  }

  /** Loads the model into this page ahead of the first run here. */
  async load(options: LoadOptions = {}): Promise<void> {
    await this.loaded(options);
  }

  /** Whether this page has it loaded. */
  get isLoaded(): boolean {
    return this.opened?.isOpen ?? false;
  }

  /** Frees what the model takes in this page. It can be used again, and is loaded again then. */
  close(): void {
    void this.local?.then((local) => local.close()).catch(() => undefined);
    this.local = undefined;
    this.opened = undefined;
  }

  private async detector() {
    const port = picturePort(this.info.inputs);
    if (!port) {
      const takes = this.info.inputs.map((port) => `${port.name} ${shown(port)}`).join(", ");
      throw new ShoalError(0, "no_detector", `${this.name} is no detector: it takes no picture, but ${takes}`);
    }
    const vision = await visionOf(`${this.http.base}/assets`);
    return { port, vision, classes: classesOf(this.info, vision) };
  }

  private async runWhere(where: Where, asked: Asked, until: number, options: ModelRunOptions): Promise<{ answer: Answer; why: string }> {
    if (where === "auto") return this.runBest(asked, until, options);
    if (where === "split" && !this.info.parts?.length) {
      throw new ShoalError(0, "not_split", `${this.name} is not split: add it with { split: 2 }, or with shoal model add --split 2`);
    }
    const answer = await this.runAt(where === "split" ? "remote" : where, asked, until, options);
    const { stages = 1, where: there } = answer.ran;
    if (there === "split") return { answer, why: `${where === "split" ? "you asked for split" : "the pool has it split"}: ${stages} nodes, a slice each` };
    if (where === "split") return { answer, why: "one node had the whole model, because too few were there for slices" };
    return { answer, why: `you asked for ${where}` };
  }

  /** Runs where it is faster, as far as that is known, and at the other place if that fails. */
  private async runBest(asked: Asked, until: number, options: ModelRunOptions): Promise<{ answer: Answer; why: string }> {
    const now = performance.now();
    const choice = choose(now, this.known, this.isLoadedAs, this.last);
    // Loaded beside the first runs on the pool, so that there is a choice at all.
    if (this.isLoadedAs === "none" && this.known.local.awayUntil <= now) void this.loaded(options).catch(() => undefined);
    const spare = other(choice.place);
    const isSpareReady = spare === "remote" ? this.known.remote.awayUntil <= now : this.isLoaded;
    const part = now + share(until - now, this.known[spare].ms, isSpareReady);
    try {
      const answer = await this.runAt(choice.place, asked, part, options);
      this.last = choice.place;
      return { answer, why: choice.why };
    } catch (error) {
      options.signal?.throwIfAborted();
      if (isRefused(error) || this.known[spare].awayUntil === Infinity || performance.now() >= until) throw error;
      return this.fallBack(choice, error, asked, until, options);
    }
  }

  private async fallBack(choice: Choice, first: unknown, asked: Asked, until: number, options: ModelRunOptions): Promise<{ answer: Answer; why: string }> {
    const spare = other(choice.place);
    try {
      const answer = await this.runAt(spare, asked, until, options);
      this.last = spare;
      return { answer, why: `the ${choice.place === "remote" ? "pool" : "page"} failed: ${wordsOf(first)}` };
    } catch (second) {
      options.signal?.throwIfAborted();
      const both = choice.place === "remote" ? [first, second] : [second, first];
      throw new ShoalError(0, "nowhere", `the model ran nowhere. On the pool: ${wordsOf(both[0])}. In this page: ${wordsOf(both[1])}`);
    }
  }

  /** Runs at one place, and notes how that went. */
  private async runAt(place: Place, asked: Asked, until: number, options: ModelRunOptions): Promise<Answer> {
    const began = performance.now();
    try {
      const answer = place === "local" ? await this.runHere(asked, until, options) : await this.runThere(asked, until, options);
      const now = performance.now();
      this.known[place] = measured(this.known[place], now, now - began - (answer.ran.ms.load ?? 0));
      return answer;
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!isRefused(error)) {
        const isFinal = error instanceof ShoalError && error.code === "local_unable";
        this.known[place] = failed(this.known[place], performance.now(), wordsOf(error), isFinal);
      }
      throw error;
    }
  }

  private async runHere(asked: Asked, until: number, options: ModelRunOptions): Promise<Answer> {
    const began = performance.now();
    const isLoaded = this.isLoaded;
    const local = await within(this.loaded(options), until, options.signal, "this page did not load the model");
    const load = performance.now() - began;
    const { packed, took, by } = await within(local.run(pack(asked)), until, options.signal, "this page did not answer");
    const ms = isLoaded ? { run: took } : { run: took, load };
    return { outputs: unpack(packed), ran: { where: "local", engine: by, ms, bytes: { sent: 0, received: 0 } } };
  }

  private async runThere(asked: Asked, until: number, options: ModelRunOptions): Promise<Answer> {
    const left = Math.min(until - performance.now(), PATIENCE_MS);
    const hangUp = new AbortController();
    const request = infer(this.http, this.name, asked, left, options.budgetMs !== undefined, hangUp.signal);
    const end = performance.now() + left;
    try {
      const { outputs, node, stages, ms, bytes } = await within(request, end, options.signal, "the pool did not answer");
      return { outputs, ran: { where: stages > 1 ? "split" : "remote", ...(node ? { node } : {}), stages, ms, bytes } };
    } finally {
      hangUp.abort();
    }
  }

  /** The model in this page, loaded if it is not yet, or not any more. */
  private loaded({ onProgress = this.options.onProgress, signal }: LoadOptions): Promise<Local> {
    if (onProgress && !this.isLoaded) this.progress.add(onProgress);
    if (this.local && (!this.opened || this.opened.isOpen)) return until(this.local, signal);
    const tell = (loaded: number) => this.progress.forEach((on) => on(loaded, this.info.file.size));
    const { base, key } = this.http;
    const local = Local.open(this.info, { base, key, assets: `${base}/assets` }, tell);
    this.local = local;
    this.opened = undefined;
    local.then(
      (opened) => {
        if (this.local !== local) return opened.close();
        this.opened = opened;
        tell(this.info.file.size);
        this.progress.clear();
      },
      (error: unknown) => {
        if (this.local !== local) return;
        this.progress.clear();
        this.local = undefined;
        const isFinal = error instanceof ShoalError && error.code === "local_unable";
        this.known.local = failed(this.known.local, performance.now(), wordsOf(error), isFinal);
      },
    );
    return until(local, signal);
  }

  private get isLoadedAs(): Loaded {
    if (this.isLoaded) return "ready";
    return this.local && !this.opened ? "loading" : "none";
  }
}

/** The class names of a detector; none if only a run can tell. Throws if the model is no detector. */
function classesOf({ name, outputs }: ModelInfo, { Classes }: Vision): ReturnType<Vision["Classes"]["of"]> | undefined {
  const [first] = outputs;
  if (!first || first.datatype !== "FP32") {
    throw new ShoalError(0, "no_detector", `${name} is no detector: its first output is ${first ? shown(first) : "missing"}`);
  }
  // The file does not say of what shape it is.
  if (first.shape.length === 0) return undefined;
  const shape = first.shape.map((side, at) => (side >= 0 ? side : at === 0 ? 1 : USUAL_BOXES));
  try {
    return Classes.of(Uint32Array.from(shape));
  } catch (error) {
    throw new ShoalError(0, "no_detector", `${name} is no detector: ${wordsOf(error)}`);
  }
}

type Row = [number, number, number, number, number, number];

function rowsOf(tensor: Tensor | undefined): Row[] {
  if (!(tensor?.data instanceof Float32Array)) throw new ShoalError(0, "bad_answer", "the answer has no boxes");
  const { data } = tensor;
  return Array.from({ length: Math.floor(data.length / BOX) }, (_, at) => [...data.subarray(at * BOX, at * BOX + BOX)] as Row);
}

/** What somebody did wrong is wrong at every place. */
function isRefused(error: unknown): boolean {
  return error instanceof ShoalError && (error.code === "bad_input" || error.status === 400 || error.status === 422);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The outcome, unless the caller gives up first. */
function until<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return within(work, Infinity, signal, "");
}

/** The outcome, if it comes in time. The work itself goes on. */
function within<T>(work: Promise<T>, end: number, signal: AbortSignal | undefined, late: string): Promise<T> {
  if (end === Infinity && !signal) return work;
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const giveUp = () => reject(signal?.reason);
    const over = () => reject(new ShoalError(0, "deadline", `${late} within ${Math.max(0, Math.round(end - began))} ms`));
    const timer = end === Infinity ? undefined : setTimeout(over, Math.max(0, end - began));
    signal?.addEventListener("abort", giveUp, { once: true });
    if (signal?.aborted) giveUp();
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    });
  });
}
