/** What came out of a run, and how it went. */

import { bytes, count, duration } from "../../core/format";
import { npyHeader } from "../../core/npy";
import { saveFile } from "../../core/save";
import type { Store } from "../../core/store";
import { jobBar } from "../../parts/bars";
import { canvas } from "../../parts/canvas";
import { icon } from "../../parts/icons";
import type { Values } from "../../parts/plot";
import { brief, drawHeat, drawLine, drawPoints, rangeOf } from "../../parts/plot";
import type { Child } from "../../view/dom";
import { el } from "../../view/dom";
import { memo } from "../../view/reactive";
import { paint } from "../job/picture";
import { shareTable } from "../job/shares";
import type { Phase, Problem, Runner } from "./run";
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
const VIEWS: readonly [View, string][] = [["line", "Line"], ["heat", "Heat map"], ["points", "Points"]];
/** Numbers listed under a plot. */
const LISTED = 8;

export function output(store: Store, settings: Settings, runner: Runner): HTMLElement {
  const jobId = memo(() => runner.job()?.id ?? null);
  const kind = memo(() => runner.job()?.kind ?? null);
  return el(
    "section",
    { class: "card output", "aria-labelledby": "output" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "output" }, "Output"),
      el("span", { class: "quiet", role: "status" }, () => WORDS[runner.phase()]),
    ),
    () => {
      const problem = runner.problem();
      return problem && problemNote(problem);
    },
    () => (jobId() === null ? idle(runner) : progress(runner)),
    () => kind() === "render" && jobId() !== null && picture(store, runner),
    () => {
      const values = runner.values();
      return values && plot(settings, values, runner.job()?.output?.type ?? "f32");
    },
    () => timing(runner),
    () =>
      jobId() !== null && [
        el("h3", null, "Who did what"),
        shareTable(() => [...(runner.job()?.shares ?? [])].sort((a, b) => b.items - a.items), () => runner.job()?.itemsDone ?? 0),
        el("a", { href: `/jobs/${jobId()}` }, `Open job ${jobId()}`),
      ],
  );
}

function idle(runner: Runner): Child {
  if (runner.phase() !== "idle") return null;
  return el("p", { class: "blank quiet" }, "Press Run, or Ctrl + Enter in the editor. The kernel is spread over every device in the pool.");
}

function progress(runner: Runner): Child {
  return jobBar(() => runner.job() ?? neverShown());
}

function neverShown(): never {
  throw new Error("progress is shown only while there is a job");
}

function problemNote(problem: Problem): HTMLElement {
  return el(
    "div",
    { class: "failure inset", role: "alert" },
    el("pre", null, problem.message),
    problem.stderr && el("pre", null, problem.stderr),
  );
}

function picture(store: Store, runner: Runner): Child {
  const job = () => runner.job() ?? neverShown();
  const render = job().render;
  if (!render) return null;
  const surface = el("canvas", { class: "picture", width: render.width, height: render.height, role: "img", "aria-label": "The picture so far" });
  paint(store, job, runner.onTiles, surface);
  return surface;
}

function plot(settings: Settings, values: Values, type: string): Child {
  const items = Math.floor(values.data.length / values.lanes);
  const columns = () => (values.lanes > 4 ? values.lanes : Math.max(1, Math.round(Math.sqrt(items))));
  // An item of many numbers is a row of the map.
  const flat: Values = values.lanes > 4 ? { data: values.data, lanes: 1 } : values;
  const shown = () => (values.lanes < 2 && settings.view() === "points" ? "line" : settings.view());
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
      VIEWS.filter(([view]) => view !== "points" || values.lanes >= 2).map(([view, label]) =>
        el("label", null, el("input", { type: "radio", name: "view", checked: () => shown() === view, onchange: () => settings.view.set(view) }), el("span", null, label)),
      ),
    ),
    board.element,
    el("p", { class: "quiet numbers-line" }, summary(values)),
    el("button", { type: "button", onclick: () => save(values, type) }, icon("save"), `Download .npy (${bytes(values.data.length * 4)})`),
  );
}

function summary(values: Values): string {
  const range = rangeOf(values.data);
  const first = Array.from({ length: Math.min(LISTED, values.data.length) }, (_, i) => brief(values.data[i] ?? 0));
  const more = values.data.length > LISTED ? ", …" : "";
  return `${count(values.data.length)} numbers from ${brief(range.low)} to ${brief(range.high)}: ${first.join(", ")}${more}`;
}

function save(values: Values, type: string): void {
  const items = Math.floor(values.data.length / values.lanes);
  const header = npyHeader(type, values.lanes > 1 ? [items, values.lanes] : [items]);
  if (header) saveFile(new Blob([header, values.data]), "output.npy");
}

function timing(runner: Runner): Child {
  const times = runner.times();
  if (!times) return null;
  const parts = [
    ["Sent", times.send],
    ["Ran on the pool", times.run],
    ["Fetched", times.fetch],
  ] as const;
  return el(
    "dl",
    { class: "facts tight three" },
    parts.map(([name, milliseconds]) => el("div", null, el("dt", null, name), el("dd", null, el("b", null, duration(milliseconds / 1000))))),
  );
}
