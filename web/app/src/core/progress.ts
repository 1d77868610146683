/** How far a job is, and who is at it. */

import type { Job } from "@shoal/sdk";

import { duration, items, percent, plural, rate } from "./format";

/** From 0 to 1. A simulation is done by all at once: its steps count, not its rows. */
export function doneOf({ sim, state, itemsDone, items: all }: Job): number {
  if (sim) return state === "done" ? 1 : sim.step / Math.max(1, sim.steps);
  return itemsDone / Math.max(1, all);
}

/** Of what the whole is made. */
export function whole({ sim, items: all }: Job): string {
  return sim ? plural(sim.steps, "step") : plural(all, "item");
}

/** Devices that did a part of it; of a simulation, those that compute it now. */
export function devicesOf({ sim, shares }: Job): number {
  return sim?.crew ? sim.crew.members.length : shares.length;
}

export function stateWord(job: Job): string {
  if (job.state !== "running") return job.state;
  return job.ableNodes === 0 ? "waiting" : percent(doneOf(job), 1);
}

/** A line about a job; `now` as `Date.now()` gives it. */
export function detail(job: Job, now: number): string {
  if (job.state === "failed") return job.error?.message ?? "failed";
  const took = ((job.ended ?? now) - (job.started ?? job.submitted)) / 1000;
  const { sim } = job;
  if (job.state !== "running") {
    const what = sim ? plural(job.state === "done" ? sim.steps : sim.step, "step") : items(job.itemsDone, job.kind);
    return `${what} in ${duration(took)}`;
  }
  if (job.ableNodes === 0) return "No device in the pool can run this yet.";
  const left = job.etaSeconds === null ? "" : `, ${duration(job.etaSeconds)} left`;
  const pace = sim ? `step ${sim.step} of ${sim.steps}` : rate(job.rate);
  return `${pace}${left}, ${plural(devicesOf(job), "device")}`;
}
