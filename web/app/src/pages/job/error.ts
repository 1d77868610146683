/** Why a job failed, in the words of the device it failed on. */

import type { JobError } from "@shoal/sdk";

import { count } from "../../core/format";
import { el } from "../../view/dom";

export function errorCard(error: JobError): HTMLElement {
  const [first, ...more] = error.message.split("\n");
  const where = [
    error.input !== null && `input ${error.input}`,
    error.input === null && error.item !== null && `item ${count(error.item)}`,
    ...error.nodes.map((name) => `on ${name}`),
  ].filter(
    (part) => part !== false && !error.message.includes(part.replace(/^(input|item|on) /, "")),
  );
  return el(
    "section",
    { class: "card failure", role: "alert" },
    el("h2", null, "What went wrong"),
    el("p", null, first ?? ""),
    more.length > 0 && el("pre", null, more.join("\n")),
    where.length > 0 && el("p", { class: "quiet" }, where.join(", ")),
    error.stderr && [el("h3", null, "The end of stderr"), el("pre", null, error.stderr)],
  );
}
