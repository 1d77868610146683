/** How a job's answers are checked, who stands for its code, and why things are as they are. */

import type { Job } from "@shoal/sdk";

import { checkedWords, verifyWords } from "../../core/checking";
import { count, shortKey } from "../../core/format";
import { saveFile } from "../../core/save";
import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import type { Child } from "../../view/dom";
import { each, el, show } from "../../view/dom";
import { effect, every, memo, signal } from "../../view/reactive";

const REFRESH = 1_000;

export function checkingCard(store: Store, job: () => Job): HTMLElement {
  return el(
    "section",
    { class: "card checking", "aria-labelledby": "checking" },
    el("h2", { id: "checking" }, "How answers are checked"),
    el("p", null, () => verifyWords(job().verify)),
    el(
      "dl",
      { class: "facts tight" },
      each(
        () => checkedWords(job()),
        ([, words]) => words,
        (entry) => fact("Units", () => count(entry()[0]), () => entry()[1]),
      ),
      fact("Being checked", () => count(job().unitsChecking), () => "units waiting for another device"),
      fact("Run twice", () => count(job().speculated), () => "because the first device was slow"),
    ),
    el("p", { class: "quiet" }, () => turnWords(job())),
    el("p", { class: "quiet" }, () => signedWords(job())),
    receipt(store, job),
  );
}

function turnWords({ priority, weight }: Job): string {
  const share = weight === 100 ? "" : ` Its weight is ${weight}; the default is 100.`;
  switch (priority) {
    case "interactive":
      return `Somebody is waiting for this job, so it runs before others.${share}`;
    case "normal":
      return `This job takes turns with other jobs.${share}`;
    case "batch":
      return `This job runs when there is nothing else to do.${share}`;
  }
}

function fact(name: string, value: () => string, more: () => string): HTMLElement {
  return el(
    "div",
    null,
    el("dt", null, name),
    el("dd", null, el("b", null, value), el("small", null, more)),
  );
}

function signedWords({ signedBy, signedHere }: Job): Child {
  if (signedBy === null) return "This job has no code to sign.";
  const key = el("code", { title: signedBy }, shortKey(signedBy));
  return signedHere
    ? ["The code came unsigned, so the coordinator signed it (", key, ")."]
    : ["The code is signed with the key ", key, ". Every device checks the signature before it runs the code."];
}

function receipt(store: Store, job: () => Job): Child {
  const problem = signal("");
  const save = async () => {
    problem.set("");
    try {
      const text = JSON.stringify(await store.shoal.receipt(job().id), null, 2);
      saveFile(new Blob([text], { type: "application/json" }), `receipt-${job().id}.json`);
    } catch (error) {
      problem.set(error instanceof Error ? error.message : String(error));
    }
  };
  return show(
    () => job().state !== "running",
    () =>
      el(
        "div",
        { class: "actions" },
        el("button", { type: "button", onclick: () => void save() }, icon("save"), "Receipt"),
        el(
          "span",
          { class: "quiet" },
          "A signed record of who computed what and how it was checked. Check it with ",
          el("code", null, "shoal verify"),
          ".",
        ),
        el("span", { class: "problem", role: "alert" }, problem),
      ),
  );
}

/** What the scheduler says about the job, or about the unit that holds one item. */
export function explainCard(store: Store, job: () => Job): HTMLElement {
  const { id, items } = job();
  const item = signal<number | null>(null);
  const lines = signal<readonly string[]>([]);
  const state = memo(() => job().state);
  let turns = 0;
  const refresh = async (about: number | null) => {
    const turn = ++turns;
    const said = await store.shoal.explain(id, about ?? undefined).catch((error: unknown) => [
      error instanceof Error ? error.message : String(error),
    ]);
    // What was asked since then is answered since then.
    if (turn === turns) lines.set(said);
  };
  effect(() => {
    if (state()) void refresh(item());
  });
  every(REFRESH, () => state() === "running" && void refresh(item()));
  const choose = (event: Event) => {
    const { value } = event.target as HTMLInputElement;
    item.set(value === "" ? null : Math.min(items - 1, Math.max(0, Math.floor(Number(value)))));
  };
  return el(
    "section",
    { class: "card", "aria-labelledby": "why" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "why" }, "Why"),
      el(
        "label",
        { class: "about" },
        el("span", null, "About item"),
        el("input", {
          type: "number",
          min: 0,
          max: items - 1,
          step: 1,
          placeholder: "all",
          onchange: choose,
        }),
      ),
    ),
    el("ul", { class: "why" }, () => lines().map((line) => el("li", null, line))),
  );
}
