/** One job: how far, how fast, by whom, and what came out. */

import type { Store } from "../../core/store";
import { ShoalError } from "@shoal/sdk";
import { el } from "../../view/dom";
import { memo } from "../../view/reactive";
import { errorCard } from "./error";
import { follow } from "./follow";
import { jobHead } from "./head";
import { pictureCard } from "./picture";
import { sharesCard } from "./shares";
import { speedCard } from "./speed";
import { unitsCard } from "./units";

export function jobPage(store: Store, id: number): HTMLElement {
  const live = follow(store, id);
  const found = memo(() => live.job() !== null);
  const kind = memo(() => live.job()?.kind);
  const failed = memo(() => live.job()?.error ?? null);
  return el(
    "main",
    { id: "main", class: "page job", tabindex: -1 },
    () => {
      if (!found()) return missing(id, live.problem());
      const job = () => live.job() ?? never();
      return [
        jobHead(store, job),
        () => {
          const error = failed();
          return error && errorCard(error);
        },
        kind() === "render" && pictureCard(store, job, live.onTiles),
        el("div", { class: "columns even" }, speedCard(job), sharesCard(job)),
        kind() !== "noop" && unitsCard(store, job),
      ];
    },
  );
}

function missing(id: number, problem: unknown): HTMLElement {
  if (problem === null) return el("p", { class: "quiet", role: "status" }, `Looking for job ${id} …`);
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
