/** What ran on this device before, kept here and nowhere else. */

import { clock, count, duration, plural } from "../core/format";
import { each, el, show } from "../view/dom";
import type { Entry } from "./ledger";
import type { Lending } from "./lending";
import { shelfLine } from "./shelf";
import { kindWords } from "./words";

const DAY = 86_400_000;

export function history(lending: Lending): HTMLElement {
  return el(
    "section",
    { class: "card", "aria-labelledby": "before" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "before" }, "What ran here"),
      show(
        () => lending.history().length > 0 && lending.stage() === "off",
        () => el("button", { type: "button", class: "plain", onclick: lending.forget }, "Clear"),
      ),
    ),
    () =>
      lending.history().length === 0 &&
      el("p", { class: "quiet" }, "Nothing yet. This list stays on your device."),
    el(
      "ul",
      { class: "running past" },
      each(lending.history, (entry) => entry.id, row),
    ),
    shelfLine(),
  );
}

function row(entry: () => Entry): HTMLElement {
  const { name, owner, kind, job } = entry();
  return el(
    "li",
    null,
    el(
      "div",
      null,
      el("b", null, name || `Job ${job}`),
      owner && ` for ${owner}`,
      el("small", null, kindWords(kind)),
      () =>
        entry().problem && el("small", { class: "problem" }, entry().problem.split("\n")[0] ?? ""),
    ),
    el(
      "div",
      { class: "figures" },
      el("small", null, () => when(entry().last)),
      el("small", null, () => amount(entry())),
    ),
  );
}

function when(time: number): string {
  return Date.now() - time < DAY ? clock(time) : new Date(time).toLocaleDateString();
}

function amount(entry: Entry): string {
  const failed = entry.failed > 0 ? `, ${count(entry.failed)} failed` : "";
  return `${plural(entry.units, "unit")}${failed}, ${duration(entry.work / 1000)}`;
}
