/** What came out of a run, and how it went. */

import { npyHeader } from "@shoal/sdk";

import { bytes, count, duration } from "../../core/format";
import { saveFile } from "../../core/save";
import type { Store } from "../../core/store";
import { jobBar } from "../../parts/bars";
import { canvas } from "../../parts/canvas";
import { icon } from "../../parts/icons";
import type { Values } from "../../parts/plot";
import { brief, drawHeat, drawLine, drawPoints, rangeOf } from "../../parts/plot";
import type { Child } from "../../view/dom";
import { el, show } from "../../view/dom";
import { memo } from "../../view/reactive";
import { picture } from "../job/picture";
import { shareTable } from "../job/shares";
import type { Phase, Problem, Runner, Times } from "./run";
import type { Settings, View } from "./settings";

const WORDS: Record<Phase, string> = {
  idle: "Not run yet",
  sending: "Sending the inputs",
  running: "Running on the pool",
  fetching: "Fetching the result",
  done: "Done",
  failed: "Failed",
  stopped: "Stopped",
};
const VIEWS: readonly [View, string][] = [
  ["line", "Line"],
  ["heat", "Heat map"],
  ["points", "Points"],
];
/** Numbers listed under a plot. */
const LISTED = 8;

export function output(store: Store, settings: Settings, runner: Runner): HTMLElement {
  const jobId = memo(() => runner.job()?.id ?? null);
  return el(
    "section",
    { class: "card output", "aria-labelledby": "output" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "output" }, "Output"),
      el("span", { class: "quiet", role: "status" }, () => WORDS[runner.phase()]),
    ),
    show(runner.problem, problemNote),
    () => idle(runner),
    show(jobId, () => jobBar(() => runner.job() ?? neverShown())),
    show(
      () => runner.job()?.kind === "render" && jobId(),
      () => picture(store, () => runner.job() ?? neverShown(), runner.onTiles),
    ),
    show(runner.values, (values) => plot(settings, values, runner.job()?.output?.type ?? "f32")),
    show(runner.times, timing),
    show(jobId, (id) => whoDidWhat(runner, id)),
  );
}

function whoDidWhat(runner: Runner, id: number): Child {
  const shares = () => [...(runner.job()?.shares ?? [])].sort((a, b) => b.items - a.items);
  return [
    el("h3", null, "Who did what"),
    shareTable(shares, () => runner.job()?.itemsDone ?? 0),
    el("a", { href: `/jobs/${id}` }, `Open job ${id}`),
  ];
}

function idle(runner: Runner): Child {
  if (runner.phase() !== "idle") return null;
  return el(
    "p",
    { class: "blank quiet" },
    "Press Run, or Ctrl + Enter in the editor. Shoal runs the kernel on every device in the pool.",
  );
}

function neverShown(): never {
  throw new Error("progress is shown only while there is a job");
}

function problemNote(problem: Problem): HTMLElement {
  const [first, ...more] = problem.message.split("\n");
  return el(
    "div",
    { class: "failure inset", role: "alert" },
    el("p", null, first),
    more.length > 0 && el("pre", null, more.join("\n")),
    problem.stderr && el("pre", null, problem.stderr),
  );
}

function plot(settings: Settings, values: Values, type: string): Child {
  const items = Math.floor(values.data.length / values.lanes);
  const columns = () =>
    values.lanes > 4 ? values.lanes : Math.max(1, Math.round(Math.sqrt(items)));
  // An item of many numbers is a row of the map.
  const flat: Values = values.lanes > 4 ? { data: values.data, lanes: 1 } : values;
  const shown = () =>
    !hasPlaces(values) && settings.view() === "points" ? "line" : settings.view();
  const board = canvas({
    class: "plot",
    label: () => summary(values),
    height: (width) => (shown() === "line" ? 240 : Math.min(420, width)),
    draw: (context, width, height) => {
      if (shown() === "line") drawLine(context, width, height, flat);
      else if (shown() === "heat") drawHeat(context, width, height, flat, columns());
      else drawPoints(context, width, height, values);
    },
  });
  return el(
    "div",
    { class: "stack" },
    el(
      "div",
      { class: "segments", role: "radiogroup", "aria-label": "How to draw the output" },
      VIEWS.filter(([view]) => view !== "points" || hasPlaces(values)).map(([view, label]) =>
        el(
          "label",
          null,
          el("input", {
            type: "radio",
            name: "view",
            checked: () => shown() === view,
            onchange: () => settings.view.set(view),
          }),
          el("span", null, label),
        ),
      ),
    ),
    board.element,
    el("p", { class: "quiet numbers-line" }, summary(values)),
    el(
      "button",
      { type: "button", onclick: () => save(values, type) },
      icon("save"),
      `Download .npy (${bytes(values.data.length * 4)})`,
    ),
  );
}

/** Whether an item can be read as a point. */
function hasPlaces({ lanes }: Values): boolean {
  return lanes >= 2 && lanes <= 4;
}

function summary(values: Values): string {
  const range = rangeOf(values.data);
  const first = Array.from({ length: Math.min(LISTED, values.data.length) }, (_, i) =>
    brief(values.data[i] ?? 0),
  );
  const more = values.data.length > LISTED ? ", …" : "";
  const span = `${count(values.data.length)} numbers from ${brief(range.low)} to ${brief(range.high)}`;
  return `${span}: ${first.join(", ")}${more}`;
}

function save(values: Values, type: string): void {
  const items = Math.floor(values.data.length / values.lanes);
  const header = npyHeader(type, values.lanes > 1 ? [items, values.lanes] : [items]);
  if (header) saveFile(new Blob([header, values.data]), "output.npy");
}

function timing(times: Times): Child {
  const parts = [
    ["Sent", times.send],
    ["Ran on the pool", times.run],
    ["Fetched", times.fetch],
  ] as const;
  return el(
    "dl",
    { class: "facts tight three" },
    parts
      .filter(([, milliseconds]) => milliseconds >= 1)
      .map(([name, milliseconds]) =>
        el(
          "div",
          null,
          el("dt", null, name),
          el("dd", null, el("b", null, duration(milliseconds / 1000))),
        ),
      ),
  );
}
