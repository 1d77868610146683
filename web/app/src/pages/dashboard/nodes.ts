/** The devices, live. */

import { colourOf } from "../../core/colours";
import { count, plural, rate } from "../../core/format";
import type { Store } from "../../core/store";
import type { PoolNode } from "@shoal/sdk";
import { meter } from "../../parts/bars";
import { icon } from "../../parts/icons";
import { each, el } from "../../view/dom";

export function nodeList(store: Store): HTMLElement {
  return el(
    "section",
    { "aria-labelledby": "devices" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "devices" }, "Devices"),
      el("span", { class: "quiet", role: "status" }, () => `${plural(store.nodes().length, "device")} in the pool`),
    ),
    () =>
      store.nodes().length === 0 &&
      el(
        "p",
        { class: "card quiet" },
        "Nobody is here yet. Open the join link on any device, or run ",
        el("code", null, "shoal join"),
        ".",
      ),
    el("ul", { class: "nodes" }, each(store.nodes, (node) => node.id, (node) => card(node))),
  );
}

function card(node: () => PoolNode): HTMLElement {
  const colour = `c${colourOf(node().id)}`;
  return el(
    "li",
    { class: () => `card node ${node().paused ? "paused" : ""}` },
    el(
      "div",
      { class: "line" },
      el("span", { class: `badge ${colour}`, title: () => kindWord(node()) }, icon(node().kind)),
      el(
        "div",
        { class: "who" },
        el("b", null, () => node().name),
        el("small", null, () => hardware(node())),
      ),
    ),
    el("div", { class: "line load" }, meter("Load", () => load(node()), colour), el("span", null, () => busyWord(node()))),
    el(
      "dl",
      { class: "pairs" },
      pair("Runs", () => job(node())),
      pair("Speed", () => speed(node())),
      pair("Done", () => done(node())),
    ),
  );
}

function pair(name: string, value: () => string | HTMLElement): HTMLElement {
  return el("div", null, el("dt", null, name), el("dd", null, value));
}

function kindWord(node: PoolNode): string {
  return node.kind === "browser" ? "Browser tab" : "Native node";
}

function hardware(node: PoolNode): string {
  const cpu = node.cpuSlots > 0 ? plural(node.cpuSlots, "CPU slot") : "no CPU work";
  if (!node.gpu) return `${kindWord(node)}, no GPU, ${cpu}`;
  return `${node.gpu.name}${node.gpu.software ? " (software)" : ""}, ${node.gpu.backend}, ${cpu}`;
}

/** The load is told from 0 to 1. */
function load(node: PoolNode): number {
  return node.load;
}

function busyWord(node: PoolNode): string {
  if (node.paused) return "paused";
  return node.running > 0 ? `${Math.round(100 * Math.min(1, load(node)))} %` : "idle";
}

function job(node: PoolNode): string | HTMLElement {
  if (node.job === null) return "nothing";
  return el("a", { href: `/jobs/${node.job}` }, node.jobName ?? `job ${node.job}`);
}

function speed(node: PoolNode): string {
  return node.rate > 0 ? `${rate(node.rate)} items` : `×${(node.speed / 100).toFixed(1)} (declared)`;
}

function done(node: PoolNode): string {
  const failed = node.unitsFailed > 0 ? `, ${count(node.unitsFailed)} failed` : "";
  return `${plural(node.unitsDone, "unit")}${failed}`;
}
