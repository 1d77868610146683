/** The slices in their order: who holds which layers, what a picture costs there, and the ways between them. */

import { bytes, count, plural } from "../../core/format";
import type { Child } from "../../view/dom";
import { each, el, show } from "../../view/dom";
import type { Classifier, Slice } from "./classifier";

export function chain(classifier: Classifier): HTMLElement {
  const slices = () => classifier.state().slices;
  return el(
    "section",
    { class: "card", "aria-labelledby": "chain", hidden: () => slices().length < 2 },
    el("h2", { id: "chain" }, "Chain"),
    el(
      "ol",
      { class: "chain" },
      each(
        () => slices().map((slice, at) => ({ slice, at, isLast: at + 1 === slices().length })),
        ({ at, slice }) => `${at} ${slice.node}`,
        (row) => link(row),
      ),
    ),
    show(
      () => slices().some(({ done }) => done > 0),
      () => timeline(slices),
    ),
  );
}

function link(row: () => { slice: Slice; at: number; isLast: boolean }): HTMLElement {
  const slice = () => row().slice;
  return el(
    "li",
    { class: () => `c${row().at} ${slice().isOwn ? "own" : ""}` },
    el(
      "div",
      { class: "slice" },
      el(
        "h3",
        null,
        () => `Slice ${row().at + 1}`,
        el("small", null, () => (slice().isOwn ? "this tab" : slice().name)),
      ),
      el(
        "dl",
        { class: "pairs" },
        pair("Layers", () => count(slice().operators)),
        pair("Parameters", () => count(slice().parameters)),
        pair("Compute", () => millis(slice().computes)),
        pair("In", () => (row().at === 0 ? "the picture" : size(slice().takes))),
        pair("Out", () => (row().isLast ? "the answer" : size(slice().handsOn))),
      ),
      el("small", null, () => (slice().ready ? plural(slice().done, "picture") : "loading")),
    ),
    el(
      "p",
      { class: "hop", hidden: () => row().isLast },
      el("b", null, () => millis(slice().travels)),
      el("small", null, () => wayWords(slice().via)),
    ),
  );
}

/** Where the time of a picture goes, as one bar. */
function timeline(slices: () => Slice[]): HTMLElement {
  const parts = () =>
    slices().flatMap(({ computes, travels }, at) => {
      const own = [{ key: `c${at}`, label: `slice ${at + 1}`, ms: computes ?? 0 }];
      if (at + 1 === slices().length) return own;
      return [...own, { key: `t${at}`, label: `to slice ${at + 2}`, ms: travels ?? 0 }];
    });
  const all = () => Math.max(1e-9, parts().reduce((sum, { ms }) => sum + ms, 0));
  return el(
    "div",
    { class: "timeline", role: "img", "aria-label": () => parts().map(({ label, ms }) => `${label} ${millis(ms)}`).join(", ") },
    each(
      parts,
      ({ key }) => key,
      (part) =>
        el("i", {
          class: part().key.replace("t", "hop c"),
          title: () => `${part().label}: ${millis(part().ms)}`,
          vars: { "--part": () => `${(100 * part().ms) / all()}%` },
        }),
    ),
  );
}

function pair(name: string, value: () => string): Child {
  return el("div", null, el("dt", null, name), el("dd", null, value));
}

export function millis(value: number | undefined): string {
  if (value === undefined) return "–";
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

function size(value: number | undefined): string {
  return value === undefined ? "–" : bytes(Math.round(value));
}

function wayWords(via: Slice["via"]): string {
  if (via === undefined) return "";
  return via === "direct" ? "by a direct link" : "through the coordinator";
}
