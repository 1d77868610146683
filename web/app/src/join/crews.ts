/** What this device does together with others, and over which links. */

import type { CrewNote, LinkNote } from "@shoal/sdk";

import { count, plural } from "../core/format";
import { each, el } from "../view/dom";
import type { Lending } from "./lending";

export const crewsOf = (lending: Lending): CrewNote[] => lending.status()?.crews ?? [];

export function crews(lending: Lending): HTMLElement {
  return el(
    "ul",
    { class: "running crews", "aria-label": "Together with other devices" },
    each(
      () => crewsOf(lending),
      ({ crew }) => crew,
      row,
    ),
  );
}

function row(crew: () => CrewNote): HTMLElement {
  const { job, name } = crew();
  return el(
    "li",
    null,
    el(
      "div",
      null,
      el("b", null, name || `Job ${job ?? crew().crew}`),
      el("small", null, () => partWords(crew())),
      el("small", null, () => linkWords(crew().links)),
    ),
    el("div", { class: "figures" }, el("b", null, () => doneWords(crew()))),
  );
}

function doneWords({ job, parts, step }: CrewNote): string {
  if (job === undefined) return "";
  return parts ? plural(step, "request") : `step ${count(step)}`;
}

function partWords({ job, rows, parts, members }: CrewNote): string {
  const others = members > 1 ? `, together with ${plural(members - 1, "other device")}` : ", alone";
  if (job === undefined) return `an application exchanges data${others}`;
  if (parts) return `a slice of a model: ${partNumbers(parts)}${others}`;
  return rows ? `a simulation: rows ${rows.start} to ${rows.start + rows.len - 1}${others}` : `a simulation${others}`;
}

function partNumbers({ start, len }: { start: number; len: number }): string {
  return len === 1 ? `part ${start + 1}` : `parts ${start + 1} to ${start + len}`;
}

function linkWords(links: LinkNote[]): string {
  const words = links.map(({ peer, via, roundTripMs }) => {
    const way = via === "direct" ? "directly" : "through the coordinator";
    return `node ${peer} ${way}, ${roundTripMs.toFixed(1)} ms`;
  });
  return words.join("; ");
}
