/** Which device did how much. */

import type { Job, Share } from "@shoal/sdk";

import { colourOf } from "../../core/colours";
import { count, percent, plural } from "../../core/format";
import { each, el } from "../../view/dom";

export function sharesCard(job: () => Job): HTMLElement {
  const ranked = () => [...job().shares].sort((a, b) => b.items - a.items);
  return el(
    "section",
    { class: "card", "aria-labelledby": "shares" },
    el("h2", { id: "shares" }, "Who did what"),
    () => job().shares.length === 0 && el("p", { class: "quiet" }, "No unit has come back yet."),
    shareTable(ranked, () => job().itemsDone),
  );
}

export function shareTable(shares: () => readonly Share[], whole: () => number): HTMLElement {
  return el(
    "table",
    { class: "shares" },
    el(
      "thead",
      { class: "unseen" },
      el(
        "tr",
        null,
        ["Device", "Items", "Units", "Share"].map((name) => el("th", { scope: "col" }, name)),
      ),
    ),
    el(
      "tbody",
      null,
      each(
        shares,
        (share) => share.node,
        (share) =>
          el(
            "tr",
            null,
            el(
              "th",
              { scope: "row" },
              el("i", { class: `dot c${colourOf(share().node)}` }),
              () => share().name,
            ),
            el("td", null, () => count(share().items)),
            el("td", { class: "quiet" }, () => plural(share().units, "unit")),
            el(
              "td",
              { class: "part" },
              el("i", {
                class: `c${colourOf(share().node)}`,
                vars: { "--part": () => `${(100 * share().items) / Math.max(1, whole())}%` },
              }),
              el("span", null, () => percent(share().items, whole())),
            ),
          ),
      ),
    ),
  );
}
