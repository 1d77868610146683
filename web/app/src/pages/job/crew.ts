/** Who computes a simulation together, how they reach each other, and what happened. */

import type { CrewInfo, CrewLink, CrewMember, Job } from "@shoal/sdk";

import { colourOf } from "../../core/colours";
import { clock, count, plural, rate } from "../../core/format";
import { each, el } from "../../view/dom";

export function crewCard(job: () => Job): HTMLElement {
  const crew = () => job().sim?.crew ?? null;
  return el(
    "section",
    { class: "card", "aria-labelledby": "crew" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "crew" }, "Crew"),
      el("span", { class: "quiet" }, () => summary(crew())),
    ),
    el("p", { class: "quiet", hidden: () => crew() !== null }, "The crew is dismissed."),
    members(() => crew()?.members ?? []),
    el("p", { class: "quiet small" }, () => prediction(crew())),
    el(
      "ol",
      { class: "changes small" },
      each(
        () => (crew()?.changes ?? []).slice(-8).reverse(),
        (change) => `${change.at} ${change.what}`,
        (change) =>
          el(
            "li",
            null,
            el("time", { class: "quiet" }, () => clock(change().at)),
            () => `epoch ${change().epoch}: ${change().what}`,
          ),
      ),
    ),
  );
}

function summary(crew: CrewInfo | null): string {
  if (!crew) return "";
  const spares = crew.spares > 0 ? `, ${plural(crew.spares, "device")} standing by` : "";
  if (crew.state === "forming") return `forming${spares}`;
  return `${plural(crew.members.length, "member")}, epoch ${crew.epoch}${spares}`;
}

function prediction(crew: CrewInfo | null): string {
  if (!crew || crew.predictedStepMs === null) return "";
  const took = crew.stepMs === null ? "" : `, ${millis(crew.stepMs)} measured`;
  const alone = crew.aloneStepMs === null ? "it does not fit on one device" : `${millis(crew.aloneStepMs)} on the fastest device alone`;
  return `Time per step: ${millis(crew.predictedStepMs)} predicted${took}; ${alone}. Last checkpoint: step ${crew.keptStep}.`;
}

function members(list: () => readonly CrewMember[]): HTMLElement {
  const names = ["Device", "Rows", "Step", "Waiting", "Links"];
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      { class: "crew", hidden: () => list().length === 0 },
      el("thead", null, el("tr", null, names.map((name) => el("th", { scope: "col" }, name)))),
      el(
        "tbody",
        null,
        each(
          list,
          (member) => member.node,
          (member) =>
            el(
              "tr",
              null,
              el("th", { scope: "row" }, el("i", { class: `dot c${colourOf(member().node)}` }), () => member().name),
              el("td", null, () => `${member().rows[0]}–${member().rows[0] + member().rows[1] - 1}`),
              el("td", null, () => count(member().step)),
              el("td", null, () => waiting(member())),
              el("td", { class: "links" }, each(() => member().links, (link) => link.with, linkView)),
            ),
        ),
      ),
    ),
  );
}

/** The share of its time that a member waits for its neighbours. */
function waiting({ computedMs, waitedMs, guessed, corrected }: CrewMember): string {
  const all = computedMs + waitedMs;
  const share = all > 0 ? `${Math.round((100 * waitedMs) / all)} %` : "–";
  return guessed + corrected > 0 ? `${share}, ${corrected} of ${guessed + corrected} guesses corrected` : share;
}

function linkView(link: () => CrewLink): HTMLElement {
  const speed = () => {
    const known = link().bytesPerSecond;
    return known === null ? "" : `, ${rate(known)} bytes`;
  };
  return el(
    "span",
    {
      class: () => `link ${link().via}`,
      title: () =>
        `to node ${link().with}: ${link().via === "direct" ? "directly" : "through the coordinator, encrypted"}, ` +
        `round trip ${millis(link().roundTripMs)}${speed()}`,
    },
    el("i", { class: `dot c${colourOf(link().with)}` }),
    () => `${link().via} ${millis(link().roundTripMs)}`,
  );
}

function millis(value: number): string {
  return value < 10 ? `${value.toFixed(1)} ms` : value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}
