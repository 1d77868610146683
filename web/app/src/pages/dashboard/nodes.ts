/** The devices, live. */

import type { PoolNode, Service } from "@shoal/sdk";

import { conditionWords, isBarred, roundTripWords, trustWords } from "../../core/checking";
import { colourOf } from "../../core/colours";
import { bytes, count, plural } from "../../core/format";
import { keptWords } from "../../core/kept";
import type { Store } from "../../core/store";
import { meter } from "../../parts/bars";
import { icon } from "../../parts/icons";
import type { Child } from "../../view/dom";
import { each, el, show } from "../../view/dom";
import { signal } from "../../view/reactive";
import { services } from "./kept";

export function nodeList(store: Store): HTMLElement {
  const known = services(store.shoal);
  return el(
    "section",
    { "aria-labelledby": "devices" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "devices" }, "Devices"),
      el(
        "span",
        { class: "quiet", role: "status" },
        () => `${plural(store.nodes().length, "device")} in the pool`,
      ),
    ),
    show(
      () => store.nodes().length === 0,
      () =>
        el(
          "p",
          { class: "card quiet" },
          "No device has joined yet. Open the join link on any device, or run ",
          el("code", null, "shoal join"),
          ".",
        ),
    ),
    el(
      "ul",
      { class: "nodes" },
      each(
        store.nodes,
        (node) => node.id,
        (node) => card(store, node, known),
      ),
    ),
  );
}

function card(store: Store, node: () => PoolNode, known: () => readonly Service[]): HTMLElement {
  const keeps = () => keptWords(known(), node().id);
  const colour = `c${colourOf(node().id)}`;
  return el(
    "li",
    { class: () => `card node ${node().paused ? "paused" : ""}` },
    el(
      "div",
      { class: "line" },
      el(
        "span",
        { class: `badge ${colour}`, title: () => kindWord(node()) },
        icon(node().kind === "browser" ? "browser" : "native"),
      ),
      el(
        "div",
        { class: "who" },
        el("b", null, () => node().name),
        el("small", null, () => hardware(node())),
      ),
    ),
    el(
      "div",
      { class: "line load" },
      meter("Load", () => node().load / 100, colour),
      el("span", null, () => busyWord(node())),
    ),
    el(
      "dl",
      { class: "pairs" },
      pair("Offers", () => offers(node())),
      pair("Runs", runs(node)),
      show(
        () => keeps() || null,
        () => pair("Keeps ready", keeps),
      ),
      pair("Speed", () => speed(node())),
      pair("Done", () => done(node())),
      pair(
        "Trust",
        el("span", { class: () => (isBarred(node()) ? "trust bad" : "trust") }, () => trustWords(node())),
      ),
      pair("Round trip", () => roundTripWords(node().roundTripMs)),
    ),
    show(
      () => conditionWords(node()) || null,
      () => el("p", { class: "condition" }, () => conditionWords(node())),
    ),
    why(store, node().id),
  );
}

/** What the scheduler says about a device, asked for when it is opened. */
function why(store: Store, id: number): HTMLElement {
  const lines = signal<readonly string[]>([]);
  const ask = async (event: Event) => {
    if (!(event.target as HTMLDetailsElement).open) return;
    lines.set(
      await store.shoal
        .explainNode(id)
        .catch((error: unknown) => [error instanceof Error ? error.message : String(error)]),
    );
  };
  return el(
    "details",
    { ontoggle: (event: Event) => void ask(event) },
    el("summary", null, "Why"),
    el("ul", { class: "why" }, () => lines().map((line) => el("li", null, line))),
  );
}

function pair(name: string, value: Child): HTMLElement {
  return el("div", null, el("dt", null, name), el("dd", null, value));
}

function kindWord(node: PoolNode): string {
  return node.kind === "browser" ? "Browser tab" : "Native node";
}

function hardware({ gpu }: PoolNode): string {
  if (!gpu) return "no GPU";
  return gpu.software && !/software/i.test(gpu.name) ? `${gpu.name}, software` : gpu.name;
}

function offers(node: PoolNode): string {
  const cpu = node.cpuSlots > 0 ? plural(node.cpuSlots, "CPU slot") : "no CPU slots";
  const offered = `${cpu}, ${bytes(node.memory)} of memory`;
  return node.gpu ? `${node.gpu.backend}, ${offered}` : offered;
}

function busyWord(node: PoolNode): string {
  if (node.paused) return "paused";
  return node.running > 0 || node.load > 0 ? `${Math.min(100, Math.round(node.load))} %` : "idle";
}

function runs(node: () => PoolNode): Child {
  return show(
    () => node().job,
    (job) => el("a", { href: `/jobs/${job}` }, () => node().jobName ?? `job ${job}`),
    () => "nothing",
  );
}

function speed(node: PoolNode): string {
  return node.rate > 0
    ? `${count(node.rate)} items/s`
    : `×${(node.speed / 100).toFixed(1)} (declared)`;
}

function done(node: PoolNode): string {
  const failed = node.unitsFailed > 0 ? `, ${count(node.unitsFailed)} failed` : "";
  return `${plural(node.unitsDone, "unit")}${failed}`;
}
