/** Bars that show a part of a whole. */

import type { Job } from "@shoal/sdk";

import { colourOf } from "../core/colours";
import { percent } from "../core/format";
import { doneOf, whole } from "../core/progress";
import { each, el } from "../view/dom";

/** How far a job is, each device's part in its own colour. */
export function jobBar(job: () => Job): HTMLElement {
  const parts = () => {
    // A simulation is done by all at once: its bar shows steps.
    const { sim } = job();
    if (sim && job().state !== "done") return [{ id: -1, items: (job().items * sim.step) / Math.max(1, sim.steps) }];
    const shares = job()
      .shares.filter((share) => share.items > 0)
      .sort((a, b) => a.node - b.node);
    const known = shares.reduce((sum, share) => sum + share.items, 0);
    const rest = Math.max(0, job().itemsDone - known);
    const rows = shares.map((share) => ({ id: share.node, items: share.items }));
    return rest > 0 ? [...rows, { id: -1, items: rest }] : rows;
  };
  return el(
    "div",
    {
      class: () => `bar ${job().state}`,
      role: "progressbar",
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": () => Math.floor(100 * doneOf(job())),
      "aria-valuetext": () => `${percent(doneOf(job()), 1)} of ${whole(job())}`,
      "aria-label": () => `Progress of ${job().name}`,
    },
    each(
      parts,
      (part) => part.id,
      (part) =>
        el("i", {
          class: part().id < 0 ? "rest" : `c${colourOf(part().id)}`,
          vars: { "--part": () => `${(100 * part().items) / Math.max(1, job().items)}%` },
        }),
    ),
  );
}

/** A quantity between 0 and 1. */
export function meter(label: string, value: () => number, colour = ""): HTMLElement {
  const share = () => Math.min(1, Math.max(0, value()));
  return el(
    "div",
    {
      class: `meter ${colour}`,
      role: "meter",
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": () => Math.round(100 * share()),
    },
    el("i", { vars: { "--part": () => `${100 * share()}%` } }),
  );
}
