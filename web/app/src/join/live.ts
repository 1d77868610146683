/** What runs on this device now, and for whom. */

import { count, plural, rate } from "../core/format";
import { each, el } from "../view/dom";
import { crews, crewsOf } from "./crews";
import type { Active } from "./ledger";
import type { Lending } from "./lending";
import { services, servicesOf } from "./services";
import { kindWords, signerWords } from "./words";

export function live(lending: Lending): HTMLElement {
  return el(
    "section",
    { class: "card", "aria-labelledby": "now" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "now" }, "Running now"),
      el("span", { class: "quiet" }, () => totals(lending)),
    ),
    () => isIdle(lending) && el("p", { class: "quiet" }, idle(lending)),
    el(
      "ul",
      { class: "running", "aria-live": "polite", "aria-relevant": "additions" },
      each(lending.active, (one) => one.entry.id, row),
    ),
    crews(lending),
    services(lending),
  );
}

function totals(lending: Lending): string {
  const status = lending.status();
  if (!status || lending.stage() === "off") return "";
  const failed = status.unitsFailed > 0 ? `, ${count(status.unitsFailed)} failed` : "";
  return `${plural(status.unitsDone, "unit")} done${failed}`;
}

const isIdle = (lending: Lending): boolean => lending.active().length === 0 && crewsOf(lending).length === 0 && servicesOf(lending).length === 0;

function idle(lending: Lending): string {
  return lending.status()?.state === "joined"
    ? "Nothing at the moment. Work starts automatically when somebody sends a job."
    : "Nothing.";
}

function row(active: () => Active): HTMLElement {
  const { name, owner, kind, job, signer, signedHere } = active().entry;
  return el(
    "li",
    null,
    el(
      "div",
      null,
      el("b", null, name || `Job ${job}`),
      owner && [" for ", el("b", null, owner)],
      el("small", null, kindWords(kind)),
      el("small", { title: signer }, signerWords(signer, signedHere)),
    ),
    el(
      "div",
      { class: "figures", "aria-live": "off" },
      el("b", null, () => rate(active().rate)),
      el(
        "small",
        null,
        () => `${plural(active().entry.units, "unit")}, ${active().running} at work`,
      ),
    ),
  );
}
