/** Milliseconds and bytes of each stage of a frame, and where the model ran. */

import type { Ran, ServiceStage } from "@shoal/sdk";

import { bytes } from "../../core/format";
import { each, el, show } from "../../view/dom";
import { memo } from "../../view/reactive";
import type { Desk, Shown } from "./desk";

interface Stage {
  key: keyof Shown["ms"];
  label: string;
  about: string;
  bytes?: keyof Ran["bytes"];
}

const STAGES: readonly Stage[] = [
  { key: "prepare", label: "Prepare", about: "reading the picture and making it small" },
  { key: "load", label: "Load", about: "loading the model into this page, once" },
  { key: "send", label: "Send", about: "on the way to the pool", bytes: "sent" },
  { key: "wait", label: "Wait", about: "until a device was free" },
  { key: "run", label: "Run", about: "in the model" },
  { key: "receive", label: "Receive", about: "the answer on its way back", bytes: "received" },
  { key: "draw", label: "Draw", about: "drawing the boxes" },
];

export function stages(desk: Desk): HTMLElement {
  return el(
    "section",
    { class: "card stages", "aria-labelledby": "stages" },
    el("h2", { id: "stages" }, "Time for a frame"),
    show(
      () => desk.found() !== null,
      () => table(desk),
      () => el("p", { class: "quiet" }, "Milliseconds and bytes of each stage appear here."),
    ),
  );
}

function table(desk: Desk): HTMLElement {
  const found = memo(() => desk.found());
  const total = () => found()?.ms.total ?? 0;
  const ms = (key: Stage["key"]) => found()?.ms[key];
  return el(
    "div",
    { class: "stack" },
    el(
      "p",
      { class: "ran" },
      el("b", null, () => ranWords(found())),
      el("small", null, () => found()?.ran.why ?? ""),
    ),
    el(
      "table",
      null,
      el("caption", { class: "unseen" }, "Milliseconds and bytes of each stage"),
      el("thead", { class: "unseen" }, el("tr", null, ["Stage", "Share", "Time", "Bytes"].map((name) => el("th", { scope: "col" }, name)))),
      el(
        "tbody",
        null,
        STAGES.map((stage) =>
          el(
            "tr",
            { hidden: () => ms(stage.key) === undefined },
            el("th", { scope: "row", title: stage.about }, stage.label),
            el("td", { class: "share", "aria-hidden": "true" }, bar(() => (ms(stage.key) ?? 0) / Math.max(1, total()))),
            el("td", { class: "number" }, () => millis(ms(stage.key))),
            el("td", { class: "number" }, () => sized(found(), stage)),
          ),
        ),
      ),
      el(
        "tfoot",
        null,
        el(
          "tr",
          null,
          el("th", { scope: "row" }, "In all"),
          el("td", { class: "number", colspan: 2 }, () => millis(total() + (ms("draw") ?? 0))),
          el("td", { class: "number" }, () => rateWords(found())),
        ),
      ),
    ),
    show(
      () => found()?.ran.where === "split",
      () => slices(desk),
    ),
  );
}

/** Where the time of "Run" goes, on average since the devices last changed. */
function slices(desk: Desk): HTMLElement {
  return el(
    "table",
    { class: "slices" },
    el("caption", null, "Run, on average: each slice, and its way to the next"),
    el("thead", { class: "unseen" }, el("tr", null, ["Device", "Compute", "Handed on", "On the way"].map((name) => el("th", { scope: "col" }, name)))),
    el(
      "tbody",
      null,
      each(
        () => desk.slices().map((slice, at) => ({ slice, at })),
        ({ slice, at }) => `${at} ${slice.node}`,
        (row) => sliceRow(() => row().slice, () => row().at),
      ),
    ),
  );
}

function sliceRow(slice: () => ServiceStage, at: () => number): HTMLElement {
  const handedOn = () => slice().handOnBytes;
  return el(
    "tr",
    null,
    el("th", { scope: "row" }, () => `${at() + 1}. ${slice().name}`),
    el("td", { class: "number" }, () => millis(slice().computeMs ?? undefined)),
    el("td", { class: "number" }, () => bytesOrNothing(handedOn())),
    el("td", { class: "number" }, () => millis(slice().travelMs ?? undefined)),
  );
}

function bytesOrNothing(value: number | null): string {
  return value === null ? "" : bytes(Math.round(value));
}

function bar(part: () => number): HTMLElement {
  return el("div", { class: "meter" }, el("i", { vars: { "--part": () => `${Math.min(100, part() * 100)}%` } }));
}

function ranWords(found: Shown | null): string {
  if (!found) return "";
  const { ran } = found;
  if (ran.where === "split") return `Ran in ${ran.stages} slices; ${ran.node?.name ?? "the last device"} answered`;
  return found.ran.where === "local" ? "Ran in this page" : `Ran on ${found.ran.node?.name ?? "the pool"}`;
}

function sized(found: Shown | null, { bytes: which }: Stage): string {
  return found && which ? bytes(found.ran.bytes[which]) : "";
}

function rateWords(found: Shown | null): string {
  return found?.rate === undefined ? "" : `${found.rate.toFixed(found.rate < 10 ? 1 : 0)} frames/s`;
}

function millis(value: number | undefined): string {
  if (value === undefined) return "";
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ms`;
}
