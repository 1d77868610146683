/** Every unit at its place in the whole: who has it, and whether it is done. */

import type { Job, Unit, UnitList } from "@shoal/sdk";

import { colourOf, colourValue, themeColour } from "../../core/colours";
import { count } from "../../core/format";
import type { Store } from "../../core/store";
import { canvas } from "../../parts/canvas";
import { el } from "../../view/dom";
import { effect, every, memo, signal } from "../../view/reactive";

const REFRESH = 700;
/** Cells are as large as they can be for few items, and never smaller than a finger can see. */
const SMALLEST = 12;
const LARGEST = 28;
const GAP = 2;
const MOST_ROWS = 14;

interface Layout {
  /** A cell's edge. */
  cell: number;
  columns: number;
  rows: number;
  /** Items in one cell. */
  each: number;
}

/** The units as they are now, asked for while the job runs and once more when it ended. */
export function watchUnits(store: Store, job: () => Job): () => UnitList {
  const list = signal<UnitList>({ units: [], truncated: false });
  const state = memo(() => job().state);
  let asking = false;
  const refresh = async () => {
    if (asking) return;
    asking = true;
    try {
      list.set(await store.shoal.units(job().id));
    } catch {
      // The next round asks again; the strip is an extra, not the job.
    }
    asking = false;
  };
  effect(() => {
    if (state()) void refresh();
  });
  every(REFRESH, () => state() === "running" && void refresh());
  return list;
}

export function unitsCard(list: () => UnitList, job: () => Job): HTMLElement {
  const spot = signal<{ x: number; y: number } | null>(null);
  const board = canvas({
    class: "units",
    label: () => inWords(job(), list()),
    height: (width) => boardHeight(layout(job().items, width)),
    draw: (context, width) => draw(context, layout(job().items, width), list(), job()),
    onpoint: (at) => spot.set(at),
  });
  const nothing = () => job().state !== "running" && list().units.length === 0;
  return el(
    "section",
    { class: "card", "aria-labelledby": "units", hidden: nothing },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "units" }, "Units"),
      el("span", { class: "quiet" }, () => tip(spot(), job(), list(), board.width())),
    ),
    board.element,
    el(
      "p",
      { class: "legend-row quiet" },
      el("span", { class: "legend" }, el("i", { class: "cell waiting" }), "waiting"),
      el("span", { class: "legend" }, el("i", { class: "cell leased" }), "assigned to a device"),
      el(
        "span",
        { class: "legend" },
        el("i", { class: "cell done" }),
        "done, in the device's colour",
      ),
      () => list().truncated && el("span", null, "Only the first 2,000 units are shown."),
    ),
  );
}

function layout(items: number, width: number): Layout {
  const fitting = Math.floor((width + GAP) / Math.max(1, items)) - GAP;
  const cell = Math.min(LARGEST, Math.max(SMALLEST, fitting));
  const columns = Math.max(1, Math.floor((width + GAP) / (cell + GAP)));
  const cells = Math.max(1, Math.min(items, columns * MOST_ROWS));
  return { cell, columns, rows: Math.ceil(cells / columns), each: items / cells };
}

function boardHeight({ rows, cell }: Layout): number {
  return rows * (cell + GAP);
}

function draw(context: CanvasRenderingContext2D, place: Layout, list: UnitList, job: Job): void {
  const cells = Math.round(job.items / place.each);
  const [waiting, done] = [themeColour("--cell"), themeColour("--accent")];
  const at = finder(list.units);
  const size = place.cell;
  context.lineWidth = 1.5;
  for (let cell = 0; cell < cells; cell += 1) {
    const x = (cell % place.columns) * (size + GAP);
    const y = Math.floor(cell / place.columns) * (size + GAP);
    const unit = at(Math.floor((cell + 0.5) * place.each));
    const own = unit?.node === undefined ? done : colourValue(colourOf(unit.node));
    const state = unit?.state ?? "waiting";
    context.fillStyle = state === "waiting" ? waiting : own;
    context.globalAlpha = state === "leased" ? 0.28 : 1;
    context.fillRect(x, y, size, size);
    if (state !== "leased") continue;
    context.globalAlpha = 1;
    context.strokeStyle = own;
    context.strokeRect(x + 0.75, y + 0.75, size - 1.5, size - 1.5);
  }
}

/** Looks units up by item; they come sorted by their start. */
function finder(units: readonly Unit[]): (item: number) => Unit | null {
  const sorted = [...units].sort((a, b) => a.start - b.start);
  return (item) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sorted[middle]?.start ?? 0) <= item) low = middle + 1;
      else high = middle;
    }
    const unit = sorted[low - 1];
    return unit && item < unit.start + unit.len ? unit : null;
  };
}

function tip(
  spot: { x: number; y: number } | null,
  job: Job,
  list: UnitList,
  width: number,
): string {
  if (!spot) return "";
  const place = layout(job.items, width);
  const edge = place.cell + GAP;
  const cell = Math.floor(spot.y / edge) * place.columns + Math.floor(spot.x / edge);
  const item = Math.floor((cell + 0.5) * place.each);
  if (item >= job.items) return "";
  const unit = finder(list.units)(item);
  if (!unit) return `items around ${count(item)}: waiting`;
  const who = unit.node === undefined ? "" : ` by ${nameOf(job, unit.node)}`;
  const word = unit.state === "leased" ? `assigned${who.replace(" by", " to")}` : `${unit.state}${who}`;
  return `items ${count(unit.start)} to ${count(unit.start + unit.len - 1)}: ${word}`;
}

function nameOf(job: Job, node: number): string {
  return job.shares.find((share) => share.node === node)?.name ?? `device ${node}`;
}

function inWords(job: Job, list: UnitList): string {
  const leased = list.units.filter((unit) => unit.state === "leased").length;
  return `Map of the job's units: ${count(job.unitsDone)} done, ${leased} assigned.`;
}
