/** A simulation's field, live; whoever drags over it stirs it. */

import type { Field, Job, SimInfo } from "@shoal/sdk";

import { colourOf } from "../../core/colours";
import type { Store } from "../../core/store";
import { each, el } from "../../view/dom";
import { effect, memo, onCleanup, signal } from "../../view/reactive";

/** Pokes are sent this often: more than a step takes, less than a hand notices. */
const STROKE_EVERY = 50;
/** Wait before asking again after something went wrong. */
const RETRY = 1_000;
/** A brush of this share of the field's width. */
const BRUSH = 0.035;

type Point = [number, number];

export function fieldCard(store: Store, job: () => Job): HTMLElement {
  const sim = () => job().sim ?? never();
  const step = signal(-1);
  return el(
    "section",
    { class: "card", "aria-labelledby": "field" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "field" }, "Field"),
      el("span", { class: "quiet" }, () => {
        const { width, height } = sim();
        return `${width} × ${height} cells${step() < 0 ? "" : `, after step ${step()}`}`;
      }),
    ),
    el("div", { class: "easel field" }, surface(store, job, sim, step.set), bands(sim)),
    el("p", { class: "quiet small" }, () => hint(job(), step())),
  );
}

function hint(job: Job, step: number): string {
  if (job.state !== "running") return step < 0 ? "No picture was kept." : "This is the last picture.";
  if (step < 0) return "Waiting for the first picture. A kernel without a “show” entry point makes none.";
  return "Drag over the picture to stir. The strips on the left show which device computes which rows.";
}

function surface(
  store: Store,
  job: () => Job,
  sim: () => SimInfo,
  onStep: (step: number) => void,
): HTMLCanvasElement {
  const { width, height } = sim();
  const canvas = el("canvas", {
    class: () => `picture ${job().state === "running" ? "stirs" : ""}`,
    width,
    height,
    role: "img",
    "aria-label": "The field of the simulation",
  });
  stir(store, job, sim, canvas);
  watch(store, job, canvas, onStep);
  return canvas;
}

/** Asks for one picture after the other for as long as the page is open and the job runs. */
function watch(store: Store, job: () => Job, canvas: HTMLCanvasElement, onStep: (step: number) => void): void {
  const stop = new AbortController();
  onCleanup(() => stop.abort());
  const { id } = job();
  const state = memo(() => job().state);
  const pause = () => new Promise((resolve) => setTimeout(resolve, RETRY));
  const look = async () => {
    let seen = 0;
    do {
      try {
        const field = await store.shoal.field(id, seen, stop.signal);
        if (!field) {
          await pause();
          continue;
        }
        seen = field.version;
        paint(canvas, field);
        onStep(field.step);
      } catch {
        if (stop.signal.aborted) return;
        await pause();
      }
    } while (!stop.signal.aborted && state() === "running");
  };
  // Once more at the end, for the last picture.
  effect(() => {
    state();
    void look();
  });
}

function paint(canvas: HTMLCanvasElement, { width, height, pixels }: Field): void {
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  canvas.getContext("2d")?.putImageData(new ImageData(pixels, width, height), 0, 0);
}

function stir(store: Store, job: () => Job, sim: () => SimInfo, canvas: HTMLCanvasElement): void {
  let last: Point | null = null;
  let sent = 0;
  const place = (event: PointerEvent): Point => {
    const { width, height } = sim();
    const box = canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width) * width,
      ((event.clientY - box.top) / box.height) * height,
    ];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (job().state !== "running") return;
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = performance.now();
    if (!last || now - sent < STROKE_EVERY) return;
    sent = now;
    const at = place(event);
    const by: Point = [at[0] - last[0], at[1] - last[1]];
    last = at;
    // A poke that got lost is not missed: the next is on its way.
    store.shoal.poke(job().id, { at, by, radius: Math.max(2, sim().width * BRUSH) }).catch(() => undefined);
  });
  const end = () => {
    last = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
}

/** Whose rows are where. */
function bands(sim: () => SimInfo): HTMLElement {
  return el(
    "div",
    { class: "bands", "aria-hidden": "true" },
    each(
      () => sim().crew?.members ?? [],
      (member) => member.node,
      (member) =>
        el("i", {
          class: `c${colourOf(member().node)}`,
          vars: { "--part": () => `${(100 * member().rows[1]) / sim().height}%` },
        }),
    ),
  );
}

function never(): never {
  throw new Error("only simulations have a field");
}
