/** The way of a token through the devices that hold a model together: where its time goes. */

import type { LanguageModel, Service, ServiceStage } from "@shoal/sdk";

import { each, el } from "../../view/dom";
import { type Holder, layersWords, stagesOf } from "./holders";

/** A device, and what a token costs there. */
export interface Step extends Holder {
  last: boolean;
  stage: ServiceStage;
}

export interface Way {
  steps: readonly Step[];
  /** Milliseconds of computing on all devices, on the slowest where they compute together, and from each one to the next;
   * null while some are not known. */
  computeMs: number | null;
  travelMs: number | null;
}

/** None while no devices hold the model together. */
export function wayOf(model: LanguageModel | null, service: Service | undefined): Way | null {
  if (!model) return null;
  const stages = service?.crew?.stages ?? [];
  const steps = stagesOf(model, service).map((holder, at): Step => {
    return { ...holder, stage: stages[at] as ServiceStage, last: at + 1 === stages.length };
  });
  if (steps.length === 0) return null;
  const computed = steps.map(({ stage }) => stage.computeMs);
  const computeMs = service?.crew?.sideBySide ? most(computed) : sum(computed);
  const travelMs = sum(steps.filter(({ last }) => !last).map(({ stage }) => stage.travelMs));
  return { steps, computeMs, travelMs };
}

function sum(all: readonly (number | null)[]): number | null {
  return all.reduce((before, one) => (before === null || one === null ? null : before + one), 0);
}

function most(all: readonly (number | null)[]): number | null {
  return all.reduce((before, one) => (before === null || one === null ? null : Math.max(before, one)), 0);
}

export function wayTable(way: () => Way | null): HTMLElement {
  return el(
    "table",
    { class: "way" },
    el("caption", null, "Where the time of a token goes, on average since these devices share the model"),
    el("thead", null, el("tr", null, ["Device", "Computes", "Waits", "To the next"].map((name) => el("th", { scope: "col" }, name)))),
    el(
      "tbody",
      null,
      each(
        () => way()?.steps ?? [],
        ({ node }) => node,
        row,
      ),
    ),
    el(
      "tfoot",
      null,
      el(
        "tr",
        null,
        el("th", { scope: "row" }, "Together"),
        el("td", null, () => millis(way()?.computeMs)),
        el("td"),
        el("td", null, () => millis(way()?.travelMs)),
      ),
    ),
  );
}

function row(step: () => Step): HTMLElement {
  const stage = () => step().stage;
  return el(
    "tr",
    { class: () => (step().ready ? "ready" : "") },
    el("th", { scope: "row" }, el("b", null, () => step().name), " ", el("small", null, () => layersWords(step()))),
    el("td", null, () => millis(stage().computeMs)),
    el("td", null, () => millis(stage().waitMs)),
    el("td", null, () => (step().last ? "" : millis(stage().travelMs)), " ", el("small", null, () => viaWords(step()))),
  );
}

function viaWords({ stage, last }: Step): string {
  if (last || stage.via === null) return "";
  return stage.via === "direct" ? "directly" : "by relay";
}

export function millis(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ms`;
}
