/** All jobs, newest first. */

import type { Job } from "@shoal/sdk";

import { ago } from "../../core/format";
import { detail, stateWord } from "../../core/progress";
import type { Store } from "../../core/store";
import { jobBar } from "../../parts/bars";
import { each, el, show } from "../../view/dom";
import { every, signal } from "../../view/reactive";

/** Rows shown before "Show all". */
const FIRST = 6;

export function jobList(store: Store): HTMLElement {
  const all = signal(false);
  const now = signal(Date.now());
  every(5_000, () => now.set(Date.now()));
  const shown = () => (all() ? store.jobs() : store.jobs().slice(0, FIRST));
  return el(
    "section",
    { class: "card", "aria-labelledby": "jobs" },
    el("h2", { id: "jobs" }, "Jobs"),
    show(() => store.jobs().length === 0, noJobs),
    el(
      "ul",
      { class: "jobs" },
      each(
        shown,
        (job) => job.id,
        (job) => row(job, now),
      ),
    ),
    show(
      () => store.jobs().length > FIRST,
      () =>
        el(
          "button",
          { type: "button", class: "plain", onclick: () => all.update((old) => !old) },
          () => (all() ? "Show fewer" : `Show all ${store.jobs().length}`),
        ),
    ),
  );
}

function noJobs(): HTMLElement {
  return el(
    "p",
    { class: "quiet" },
    "No jobs yet. Press ",
    el("b", null, "Run it"),
    ", open the ",
    el("a", { href: "/playground" }, "playground"),
    ", or use ",
    el("code", null, "shoal map"),
    " on the command line.",
  );
}

function row(job: () => Job, now: () => number): HTMLElement {
  return el(
    "li",
    null,
    el(
      "div",
      { class: "line" },
      el("a", { class: "name", href: `/jobs/${job().id}` }, () => job().name || `Job ${job().id}`),
      el("span", { class: "tag" }, () => job().kind),
      el("span", { class: () => `state ${job().state}` }, () => stateWord(job())),
    ),
    jobBar(job),
    el(
      "div",
      { class: "line small" },
      el("span", null, () => detail(job(), now())),
      el(
        "span",
        { class: "end" },
        () => `${job().owner ? `${job().owner}, ` : ""}${ago(job().submitted, now())}`,
      ),
    ),
  );
}
