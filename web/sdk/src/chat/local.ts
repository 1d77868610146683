/** A language model in this page: its file is fetched once and kept by the browser; words, template and answers are made by the
 * engine's module. Nothing of a conversation leaves the device. */

import type { Http } from "../http.js";
import { type Engine, PageEngine } from "../models/page-engine.js";
import { languageModule } from "../relaxed.js";
import type { SaidPart } from "../workers/messages.js";
import { languageModel, requestOf } from "./remote.js";
import type { ChatOptions, ChatPart, ChatUsage } from "./types.js";

type On = NonNullable<ChatOptions["on"]>;

/** The models that a page has loaded, by what computes them and by name. */
export class LocalChats {
  private readonly opened = new Map<string, Promise<PageEngine>>();
  private readonly progress = new Map<string, Set<(loaded: number, total: number) => void>>();

  constructor(private readonly http: Http) {}

  async *chat(options: ChatOptions): AsyncGenerator<ChatPart> {
    const { signal, model, on = "processor" } = options;
    signal?.throwIfAborted();
    const engine = await abortable(this.engine(model, on, options.onProgress), signal);
    const parts: ChatPart[] = [];
    let wake: () => void = () => undefined;
    const onSaid = (said: SaidPart) => {
      parts.push(partOf(said));
      wake();
    };
    const { done, leave } = engine.ask({ chat: requestOf(options) }, { onSaid });
    const abort = () => leave(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let isDone = false;
    const ended = done.then(() => (isDone = true));
    try {
      for (;;) {
        for (let part = parts.shift(); part; part = parts.shift()) yield part;
        if (isDone) return;
        await Promise.race([ended, new Promise<void>((resolve) => (wake = resolve))]);
      }
    } finally {
      signal?.removeEventListener("abort", abort);
      // Whoever stops listening stops the model.
      if (!isDone) leave(new DOMException("nobody listens any more", "AbortError"));
      ended.catch(() => undefined);
    }
  }

  /** Frees what a model takes in this page. It is loaded again when it is asked again. */
  close(model: string): void {
    for (const name of [`processor ${model}`, `gpu ${model}`]) {
      void this.opened.get(name)?.then((engine) => engine.close()).catch(() => undefined);
      this.opened.delete(name);
    }
  }

  private async engine(model: string, on: On, onProgress: ChatOptions["onProgress"]): Promise<PageEngine> {
    const name = `${on} ${model}`;
    const heard = this.progress.get(name) ?? new Set();
    this.progress.set(name, heard);
    if (onProgress) heard.add(onProgress);
    try {
      const known = await this.opened.get(name)?.catch(() => undefined);
      if (known?.isOpen) return known;
      const opening = this.open(model, on, (loaded, total) => heard.forEach((tell) => tell(loaded, total)));
      this.opened.set(name, opening);
      opening.catch(() => this.opened.get(name) === opening && this.opened.delete(name));
      return await opening;
    } finally {
      if (onProgress) heard.delete(onProgress);
    }
  }

  private async open(model: string, on: On, onProgress: (loaded: number, total: number) => void): Promise<PageEngine> {
    const { base, key } = this.http;
    const { file, context, memory } = await languageModel(this.http, model);
    const assets = `${base}/assets`;
    const work = { kind: "llm", bytes: new Uint8Array(0), model: file, alone: { context, memory } };
    const engine: Engine =
      on === "gpu"
        ? { worker: "llm-gpu-worker", wasm: `${assets}/llm-gpu_bg.wasm`, work }
        : { worker: "llm-worker", wasm: languageModule(assets), work };
    return PageEngine.open(engine, { base, key, assets }, (loaded) => onProgress(loaded, file.size));
  }
}

function partOf({ text, logprobs, finish, promptTokens = 0, answerTokens = 0, cachedTokens = 0, promptMs, answerMs }: SaidPart): ChatPart {
  const part: ChatPart = logprobs ? { text, logprobs } : { text };
  if (finish === undefined) return part;
  const usage: ChatUsage = { promptTokens, answerTokens, cachedTokens };
  if (promptMs !== undefined && answerMs !== undefined) {
    const rate = (tokens: number, ms: number) => (ms > 0 ? (1000 * tokens) / ms : 0);
    [usage.promptMs, usage.promptRate] = [promptMs, rate(promptTokens - cachedTokens, promptMs)];
    [usage.answerMs, usage.answerRate] = [answerMs, rate(answerTokens, answerMs)];
  }
  return { ...part, finish, usage };
}

/** Fails as soon as nobody wants it any more; what it waits for goes on. */
function abortable<T>(what: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return what;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    what.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
