/** Items per second of every job that runs, over the last two minutes. */

import { COLOURS } from "../../core/colours";
import { series } from "../../core/series";
import type { Store } from "../../core/store";
import { chart } from "../../parts/chart";
import { el } from "../../view/dom";
import { every } from "../../view/reactive";

const SAMPLE = 1_000;
/** Samples taken after the last job ended, so that the chart comes to rest at zero. */
const TAIL = 6;

/** Outlives the page, so that going to a job and back keeps the curve. */
const history = series();
const seen = new Map<number, string>();
let tail = 0;

export function throughput(store: Store): HTMLElement {
  every(SAMPLE, () => sample(store));
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
      empty: "Nothing has run since this page was opened.",
    }),
  );
}

function sample(store: Store): void {
  const jobs = store.jobs();
  const running = jobs.some((job) => job.state === "running");
  tail = running ? TAIL : tail - 1;
  // An idle pool is not drawn: a chart that crawls along at zero says nothing.
  if (tail < 0) return;
  const recent = jobs.filter((job) => job.state === "running" || seen.has(job.id));
  for (const job of recent) seen.set(job.id, job.name);
  history.push(Date.now(), new Map(recent.map((job) => [job.id, job.itemsDone])));
}
