/** Name, state, progress and what can be done with a job. */

import type { Job } from "@shoal/sdk";

import { bytes, clock, count, duration, items, percent, plural, rate } from "../../core/format";
import { go } from "../../core/route";
import { saveResult } from "../../core/save";
import type { Store } from "../../core/store";
import { jobBar } from "../../parts/bars";
import { confirmButton } from "../../parts/confirm";
import { icon } from "../../parts/icons";
import type { Child } from "../../view/dom";
import { el, show } from "../../view/dom";
import { every, signal } from "../../view/reactive";

export function jobHead(store: Store, job: () => Job): HTMLElement {
  const now = signal(Date.now());
  every(500, () => job().state === "running" && now.set(Date.now()));
  return el(
    "section",
    { class: "card job-head" },
    el(
      "div",
      { class: "line top" },
      el("h1", null, () => job().name || `Job ${job().id}`),
      el("span", { class: "tag" }, () => job().kind),
      el("span", { class: () => `state ${job().state}`, role: "status" }, () => job().state),
      el(
        "span",
        { class: "end quiet" },
        () => `#${job().id}${byWhom(job())}, ${clock(job().submitted)}`,
      ),
    ),
    el("div", { class: "big" }, jobBar(job)),
    facts(job, now),
    el(
      "div",
      { class: "actions" },
      show(
        () => job().state,
        (state) => actions(store, job, state),
      ),
    ),
  );
}

function byWhom(job: Job): string {
  return job.owner ? ` by ${job.owner}` : "";
}

function facts(job: () => Job, now: () => number): HTMLElement {
  const took = () => ((job().ended ?? now()) - (job().started ?? job().submitted)) / 1000;
  if (job().kind === "sim") return simFacts(job, took);
  const failed = () => (job().itemsFailed > 0 ? `, ${count(job().itemsFailed)} failed` : "");
  const speed = () =>
    job().state === "running" ? job().rate : job().itemsDone / Math.max(1e-3, took());
  return el(
    "dl",
    { class: "facts tight" },
    fact(
      "Progress",
      () => percent(job().itemsDone, job().items),
      () => `${count(job().itemsDone)} of ${items(job().items, job().kind)}${failed()}`,
    ),
    fact(
      "Rate",
      () => rate(speed()),
      () =>
        job().state === "running" ? `${words(job().kind)} now` : `${words(job().kind)} on average`,
    ),
    fact(
      () => (job().state === "running" ? "Time left" : "Time taken"),
      () => (job().state === "running" ? left(job()) : duration(took())),
      () => (job().state === "running" ? `${duration(took())} so far` : ended(job())),
    ),
    fact(
      "Units",
      () => count(job().unitsDone),
      () => unitsMore(job()),
    ),
  );
}

/** Of a simulation: steps, not rows. */
function simFacts(job: () => Job, took: () => number): HTMLElement {
  const sim = () => job().sim;
  const done = () => (job().state === "done" ? (sim()?.steps ?? 0) : (sim()?.step ?? 0));
  return el(
    "dl",
    { class: "facts tight" },
    fact(
      "Progress",
      () => percent(done(), sim()?.steps ?? 0),
      () => `step ${count(done())} of ${count(sim()?.steps ?? 0)}`,
    ),
    fact(
      "Steps",
      () => {
        const ms = sim()?.crew?.stepMs;
        return job().state === "running" ? (ms ? rate(1000 / ms) : "…") : rate(done() / Math.max(1e-3, took()));
      },
      () => (job().state === "running" ? "now" : "on average"),
    ),
    fact(
      () => (job().state === "running" ? "Time left" : "Time taken"),
      () => (job().state === "running" ? left(job()) : duration(took())),
      () => (job().state === "running" ? `${duration(took())} so far` : ended(job())),
    ),
    fact(
      "Crew",
      () => count(sim()?.crew?.members.length ?? job().shares.length),
      () => (job().retries > 0 ? `changed ${plural(job().retries, "time")}` : "unchanged so far"),
    ),
  );
}

function fact(name: Child, value: () => string, more: () => string): HTMLElement {
  return el(
    "div",
    null,
    el("dt", null, name),
    el("dd", null, el("b", null, value), el("small", null, more)),
  );
}

function words(kind: Job["kind"]): string {
  return items(2, kind).slice(2);
}

function left(job: Job): string {
  if (job.ableNodes === 0) return "waiting";
  return job.etaSeconds === null ? "…" : duration(job.etaSeconds);
}

function ended(job: Job): string {
  return job.ended === null ? "" : `ended ${clock(job.ended)}`;
}

function unitsMore(job: Job): string {
  const tried = job.retries > 0 ? `, ${plural(job.retries, "retry", "retries")}` : "";
  if (job.state !== "running") return `${plural(job.shares.length, "device")} took part${tried}`;
  if (job.ableNodes === 0) return "no device in the pool can run it yet";
  return `${plural(job.unitsLeased, "unit")} in progress${tried}`;
}

function actions(store: Store, job: () => Job, state: Job["state"]): Child {
  const id = job().id;
  if (state === "running") {
    const cancel = async () => store.learn(await store.shoal.cancel(id));
    return confirmButton([icon("stop"), "Cancel job"], "Cancel this job?", () => void cancel());
  }
  const remove = async () => {
    await store.shoal.remove(id);
    store.forget(id);
    go("/");
  };
  return [
    state === "done" && job().result.form !== "nothing" && saveButtons(store, job),
    confirmButton([icon("bin"), "Remove"], "Remove job and result?", () => void remove()),
  ];
}

function saveButtons(store: Store, job: () => Job): Child {
  const busy = signal(false);
  const problem = signal("");
  const save = async () => {
    busy.set(true);
    problem.set("");
    try {
      await saveResult(store.shoal, job());
    } catch (error) {
      problem.set(error instanceof Error ? error.message : String(error));
    }
    busy.set(false);
  };
  return [
    el(
      "button",
      { type: "button", class: "primary", disabled: () => busy(), onclick: () => void save() },
      icon("save"),
      () => (busy() ? "Downloading …" : `Download ${resultName(job())}`),
    ),
    el("span", { class: "problem", role: "alert" }, problem),
  ];
}

function resultName(job: Job): string {
  if (job.result.form === "tiles") return "picture";
  return job.result ? `result (${bytes(job.result.bytes)})` : "result";
}
