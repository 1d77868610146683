/** A first job for newcomers: one press, or the same as one line of shell. */

import { go } from "../../core/route";
import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import { el } from "../../view/dom";
import { signal } from "../../view/reactive";

const SIZES = [
  { label: "Small", tensorSize: 256, iterations: 4 },
  { label: "Medium", tensorSize: 512, iterations: 8 },
  { label: "Large", tensorSize: 1024, iterations: 16 },
] as const;

export function tryCard(store: Store): HTMLElement {
  const picked = signal(0);
  const busy = signal(false);
  const problem = signal("");
  const size = () => SIZES[picked()] ?? SIZES[0];
  const body = () => ({
    computeType: "matmul",
    iterations: size().iterations,
    tensorSize: size().tensorSize,
  });

  const run = async () => {
    busy.set(true);
    problem.set("");
    try {
      const { jobId } = await store.shoal.submitBuiltIn(body());
      go(`/jobs/${jobId}`);
    } catch (error) {
      problem.set(error instanceof Error ? error.message : String(error));
    } finally {
      busy.set(false);
    }
  };

  return el(
    "section",
    { class: "card", "aria-labelledby": "try" },
    el("h2", { id: "try" }, "Try it"),
    el("p", { class: "quiet" }, "Multiply two matrices on every device of the pool."),
    el(
      "div",
      { class: "segments", role: "radiogroup", "aria-label": "Size of the matrices" },
      SIZES.map((one, i) =>
        el(
          "label",
          null,
          el("input", {
            type: "radio",
            name: "size",
            checked: () => picked() === i,
            onchange: () => picked.set(i),
          }),
          el("span", null, one.label, el("small", null, `${one.tensorSize}²`)),
        ),
      ),
    ),
    el(
      "button",
      { type: "button", class: "primary", disabled: () => busy(), onclick: () => void run() },
      icon("play"),
      "Run it",
    ),
    el("p", { class: "problem", role: "alert" }, problem),
    el(
      "details",
      null,
      el("summary", null, "From a shell"),
      el("pre", null, () => shellCommand(body())),
    ),
  );
}

function shellCommand(body: object): string {
  return [
    `curl ${location.origin}/submit-job`,
    `-H "Authorization: Bearer $SHOAL_KEY"`,
    `-H "Content-Type: application/json"`,
    `-d '${JSON.stringify(body)}'`,
  ].join(" \\\n  ");
}
