/** One job: how far, how fast, by whom, and what came out. */

import type { Job } from "@shoal/sdk";
import { ShoalError } from "@shoal/sdk";

import type { Store } from "../../core/store";
import type { Child } from "../../view/dom";
import { el, show } from "../../view/dom";
import { checkingCard, explainCard } from "./checking";
import { crewCard } from "./crew";
import { errorCard } from "./error";
import { fieldCard } from "./field";
import type { Followed } from "./follow";
import { follow } from "./follow";
import { jobHead } from "./head";
import { pictureCard } from "./picture";
import { sharesCard } from "./shares";
import { speedCard } from "./speed";
import { unitsCard, watchUnits } from "./units";

export function jobPage(store: Store, id: number): HTMLElement {
  const live = follow(store, id);
  return el(
    "main",
    { id: "main", class: "page job", tabindex: -1 },
    show(
      () => live.job() !== null,
      () => body(store, live),
      () => () => missing(id, live.problem()),
    ),
  );
}

function body(store: Store, live: Followed): Child {
  const job = () => live.job() ?? never();
  const { kind } = job();
  const units = watchUnits(store, job);
  return [
    jobHead(store, job),
    show(() => job().error, errorCard),
    kind === "render" && pictureCard(store, job, units, live.onTiles),
    ...(kind === "sim" ? together(store, job) : apart(store, job)),
    kind !== "sim" && unitsCard(units, job),
  ];
}

/** Units are computed one by one, */
function apart(store: Store, job: () => Job): Child[] {
  return [
    el("div", { class: "columns even" }, speedCard(job), sharesCard(job)),
    el("div", { class: "columns even" }, checkingCard(store, job), explainCard(store, job)),
  ];
}

/** a simulation by all at once. */
function together(store: Store, job: () => Job): Child[] {
  return [el("div", { class: "columns even" }, fieldCard(store, job), crewCard(job)), explainCard(store, job)];
}

function missing(id: number, problem: unknown): HTMLElement {
  if (problem === null)
    return el("p", { class: "quiet", role: "status" }, `Looking for job ${id} …`);
  const gone = problem instanceof ShoalError && problem.status === 404;
  return el(
    "section",
    { class: "card" },
    el("h1", null, gone ? `There is no job ${id}` : "This job cannot be shown"),
    el("p", { class: "quiet" }, gone ? "It was removed, or never was." : String(problem)),
    el("a", { href: "/" }, "Back to the dashboard"),
  );
}

function never(): never {
  throw new Error("a job page reads its job only after it was found");
}
