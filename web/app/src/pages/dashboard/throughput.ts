/** Items per second of every job that runs, over the last two minutes. */

import { COLOURS } from "../../core/colours";
import { series } from "../../core/series";
import type { Store } from "../../core/store";
import { chart } from "../../parts/chart";
import { el } from "../../view/dom";
import { every } from "../../view/reactive";

const SAMPLE = 1_000;

/** Outlives the page, so that going to a job and back keeps the curve. */
const history = series();
const seen = new Map<number, string>();

export function throughput(store: Store): HTMLElement {
  // Before the jobs are known there is nothing to count from.
  every(SAMPLE, () => store.pool() && sample(store));
  return el(
    "section",
    { class: "card", "aria-labelledby": "throughput" },
    el("h2", { id: "throughput" }, "Throughput"),
    chart({
      label: "Throughput of all jobs",
      unit: "items per second",
      samples: history.samples,
      series: () => {
        const shown = history.samples();
        return [...seen]
          .filter(([id]) => shown.some((sample) => (sample.rates.get(id) ?? 0) > 0))
          .map(([id, name]) => ({ id, name: `${name} #${id}`, colour: id % COLOURS }));
      },
      empty: "Nothing has run since you opened this page.",
    }),
  );
}

function sample(store: Store): void {
  const jobs = store.jobs();
  for (const job of jobs) seen.set(job.id, job.name);
  history.push(Date.now(), new Map(jobs.map((job) => [job.id, job.itemsDone])));
}
