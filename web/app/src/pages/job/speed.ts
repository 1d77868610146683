/** Items per second of one job, by device. */

import type { Job } from "@shoal/sdk";

import { colourOf } from "../../core/colours";
import type { Series } from "../../core/series";
import { series } from "../../core/series";
import { chart } from "../../parts/chart";
import { el } from "../../view/dom";
import { every } from "../../view/reactive";

const SAMPLE = 500;

/** By job, so that leaving the page and coming back keeps the curve. */
const histories = new Map<number, Series>();

export function speedCard(job: () => Job): HTMLElement {
  const history = historyOf(job().id);
  every(SAMPLE, () => {
    history.push(Date.now(), new Map(job().shares.map((share) => [share.node, share.items])));
  });
  const nothing = () => job().state !== "running" && history.samples().length < 2;
  return el(
    "section",
    { class: "card", "aria-labelledby": "speed", hidden: nothing },
    el("h2", { id: "speed" }, "Throughput"),
    chart({
      label: "Throughput of this job by device",
      unit: "items per second",
      samples: history.samples,
      series: () =>
        [...job().shares]
          .sort((a, b) => a.node - b.node)
          .map((share) => ({ id: share.node, name: share.name, colour: colourOf(share.node) })),
      empty: "The chart fills in while the job runs and this page is open.",
    }),
  );
}

function historyOf(id: number): Series {
  const known = histories.get(id);
  if (known) return known;
  const fresh = series();
  histories.set(id, fresh);
  return fresh;
}
