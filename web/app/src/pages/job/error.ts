/** Why a job failed, in the words of the device it failed on. */

import { count } from "../../core/format";
import type { JobError } from "@shoal/sdk";
import { el } from "../../view/dom";

export function errorCard(error: JobError): HTMLElement {
  const [first, ...more] = error.message.split("\n");
  const where = [
    error.input !== null && `input ${error.input}`,
    error.input === null && error.item !== null && `item ${count(error.item)}`,
    error.nodes.length > 0 && `seen on ${error.nodes.join(", ")}`,
  ].filter(Boolean);
  return el(
    "section",
    { class: "card failure", role: "alert" },
    el("h2", null, "What went wrong"),
    el("p", null, first ?? ""),
    more.length > 0 && el("pre", null, more.join("\n")),
    where.length > 0 && el("p", { class: "quiet" }, where.join(", ")),
    error.stderr && [el("h3", null, "The end of its stderr"), el("pre", null, error.stderr)],
  );
}
