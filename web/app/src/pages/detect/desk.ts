/** What the page knows and does: which model, where it runs, what is looked at, and what was found. One frame is looked at
 * at a time, always the newest: frames never queue. */

import type { Detections, Model, ModelEntry, Stages, Where } from "@shoal/sdk";

import type { Store } from "../../core/store";
import { every, memo, onCleanup, signal } from "../../view/reactive";
import type { Media } from "./source";
import { nextFrame, openCamera, openFile } from "./source";

/** How often the list of models is asked for. */
const LIST_MS = 4_000;
/** How often numbers of a video change on the page: faster, nobody reads them. */
const SHOW_MS = 250;
/** How long a failed frame is left alone before the next one is tried. */
const AGAIN_MS = 1_000;

export interface Shown extends Detections {
  ms: Stages & { draw: number };
  /** Frames a second, of what moves. */
  rate: number | undefined;
}

export type Desk = ReturnType<typeof openDesk>;

export function openDesk(store: Store) {
  const models = signal<readonly ModelEntry[] | null>(null);
  const chosen = signal<Model | null>(null);
  const where = signal<Where>("auto");
  const score = signal(0.25);
  const media = signal<Media | null>(null);
  const found = signal<Shown | null>(null);
  const problem = signal("");
  const modelProblem = signal("");
  const progress = signal<{ loaded: number; total: number } | null>(null);
  const adding = signal(false);
  const busy = signal(false);
  /** Draws boxes; the page sets it. */
  let draw: (found: Detections | null) => void = () => {};
  let stop = new AbortController();

  const list = async () => {
    try {
      const now = await store.shoal.models();
      if (JSON.stringify(now) !== JSON.stringify(models())) models.set(now);
      const first = now.find(mayDetect) ?? now[0];
      if (!chosen() && first && !adding()) await choose(first.name);
    } catch {
      // The header says that the connection is lost; models that are loaded go on.
    }
  };

  const choose = async (name: string) => {
    modelProblem.set("");
    try {
      const model = await store.shoal.model(name, { onProgress: (loaded, total) => progress.set(loaded < total ? { loaded, total } : null) });
      chosen()?.close();
      chosen.set(model);
      if (where() === "split" && !model.info.parts?.length) where.set("auto");
      await model.mustDetect();
    } catch (error) {
      modelProblem.set(words(error));
    }
    restart();
  };

  const add = async (file: File) => {
    adding.set(true);
    modelProblem.set("");
    try {
      const onProgress = (loaded: number, total: number) => progress.set({ loaded, total });
      const { name } = await store.shoal.addModel(file, { onProgress });
      await list();
      await choose(name);
    } catch (error) {
      modelProblem.set(`${file.name} was not added: ${words(error)}`);
    } finally {
      adding.set(false);
      progress.set(null);
    }
  };

  /** Looks at one thing instead of another. */
  const open = async (opening: () => Promise<Media>) => {
    problem.set("");
    busy.set(true);
    try {
      const next = await opening();
      media()?.close();
      found.set(null);
      media.set(next);
      restart();
    } catch (error) {
      problem.set(words(error));
    } finally {
      busy.set(false);
    }
  };

  const close = () => {
    stop.abort();
    media()?.close();
    media.set(null);
    found.set(null);
    problem.set("");
  };

  /** Begins anew with what is chosen now; what is under way is not waited for. */
  const restart = () => {
    stop.abort();
    stop = new AbortController();
    const [model, source] = [chosen(), media()];
    if (model && source && !modelProblem()) void look(model, source, stop.signal);
  };

  const look = async (model: Model, source: Media, signal: AbortSignal) => {
    const rates = new Rates();
    let shown = -Infinity;
    while (!signal.aborted) {
      try {
        const seen = await model.detect(source.element, { where: where(), score: score(), signal });
        if (signal.aborted) return;
        const began = performance.now();
        draw(seen);
        const now = performance.now();
        const rate = rates.next(now);
        if (source.kind === "picture" || now - shown > SHOW_MS) {
          found.set({ ...seen, ms: { ...seen.ran.ms, draw: now - began }, rate: source.kind === "picture" ? undefined : rate });
          shown = now;
        }
        problem.set("");
        if (source.kind === "picture") return;
      } catch (error) {
        if (signal.aborted) return;
        problem.set(words(error));
        draw(null);
        await pause(AGAIN_MS, signal);
        if (source.kind === "picture" && isOwnFault(error)) return;
      }
      await nextFrame(source);
    }
  };

  void list();
  every(LIST_MS, () => void list());
  onCleanup(() => {
    close();
    chosen()?.close();
  });

  return {
    models,
    chosen,
    where,
    score,
    media,
    found,
    problem,
    modelProblem,
    progress,
    adding,
    busy,
    /** Whether several devices of the pool may have a slice of the model each. */
    isSplit: memo(() => (chosen()?.info.parts?.length ?? 0) > 0),
    /** Those that have. */
    slices: memo(() => models()?.find(({ name }) => name === chosen()?.name)?.split?.stages ?? []),
    isLive: memo(() => media() !== null && media()?.kind !== "picture"),
    choose,
    add,
    close,
    openFile: (file: File | Blob) => open(() => openFile(file)),
    openCamera: () => open(openCamera),
    setWhere: (place: Where) => {
      where.set(place);
      restart();
    },
    setScore: (least: number) => {
      score.set(least);
      // What moves is looked at again anyway.
      if (media()?.kind === "picture") restart();
    },
    setDraw: (how: (found: Detections | null) => void) => (draw = how),
  };
}

/** Frames a second, over the last ones. */
class Rates {
  private readonly times: number[] = [];

  next(now: number): number | undefined {
    this.times.push(now);
    if (this.times.length > 10) this.times.shift();
    const [first = now] = this.times;
    return this.times.length > 1 ? (1000 * (this.times.length - 1)) / (now - first) : undefined;
  }
}

/** Whether it takes pictures and gives rows, as detectors do. Only the model itself knows for sure. */
function mayDetect({ inputs, outputs }: ModelEntry): boolean {
  return inputs.some(({ shape }) => shape.length === 4) && outputs[0]?.shape.length === 3;
}

/** It would be the same again. */
function isOwnFault(error: unknown): boolean {
  const code = (error as { code?: string }).code ?? "";
  return ["bad_input", "bad_picture", "no_detector"].includes(code);
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
}
