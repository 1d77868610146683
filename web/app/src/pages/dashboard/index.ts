/** The pool at a glance: devices, jobs, throughput, and how to invite more. */

import { count, plural, rate } from "../../core/format";
import type { Store } from "../../core/store";
import { el } from "../../view/dom";
import { inviteCard } from "./invite";
import { jobList } from "./jobs";
import { nodeList } from "./nodes";
import { throughput } from "./throughput";
import { tryCard } from "./try";

export function dashboard(store: Store): HTMLElement {
  return el(
    "main",
    { id: "main", class: "page dashboard", tabindex: -1 },
    el("h1", { class: "unseen" }, "Dashboard"),
    summary(store),
    el(
      "div",
      { class: "columns" },
      el("div", { class: "stack" }, throughput(store), jobList(store)),
      el("div", { class: "stack side" }, inviteCard(store), tryCard(store)),
    ),
    nodeList(store),
  );
}

function summary(store: Store): HTMLElement {
  const gpus = () => store.nodes().filter((node) => node.gpu).length;
  const slots = () => store.nodes().reduce((sum, node) => sum + node.cpuSlots, 0);
  const running = () => store.jobs().filter((job) => job.state === "running");
  const speed = () => running().reduce((sum, job) => sum + job.rate, 0);
  const units = () => store.nodes().reduce((sum, node) => sum + node.unitsDone, 0);
  return el(
    "dl",
    { class: "facts" },
    fact(
      "Devices",
      () => count(store.nodes().length),
      () => [plural(gpus(), "GPU"), plural(slots(), "CPU slot")].join(", "),
    ),
    fact(
      "Running",
      () => count(running().length),
      () => plural(store.jobs().length, "job") + " in total",
    ),
    fact(
      "Throughput",
      () => rate(speed()),
      () => "items finished",
    ),
    fact(
      "Units done",
      () => count(units()),
      () => "by the devices connected now",
    ),
  );
}

function fact(name: string, value: () => string, more: () => string): HTMLElement {
  return el(
    "div",
    null,
    el("dt", null, name),
    el("dd", null, el("b", null, value), el("small", null, more)),
  );
}
