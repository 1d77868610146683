/** A classifier in slices: each tab that lends itself holds some layers, and pictures go through all of them. */

import type { Store } from "../../core/store";
import { plural } from "../../core/format";
import { el, show } from "../../view/dom";
import { memo } from "../../view/reactive";
import { chain } from "./chain";
import { classes } from "./classes";
import { type Classifier, openClassifier, SLICES } from "./classifier";
import { pictures } from "./pictures";

export function classifyPage(store: Store): HTMLElement {
  const classifier = openClassifier(store.shoal);
  return el(
    "main",
    { id: "main", class: "page classify", tabindex: -1 },
    el(
      "div",
      { class: "intro" },
      el("h1", null, "A neural network in slices"),
      el(
        "p",
        { class: "quiet" },
        "It tells ten kinds of things apart. Its layers are cut into three slices, and each tab of this page that you ",
        "lend holds one. A picture goes in at the first slice, and the answer comes out of the last.",
      ),
    ),
    tabs(classifier),
    chain(classifier),
    el("div", { class: "two" }, pictures(classifier), classes(classifier)),
  );
}

function tabs(classifier: Classifier): HTMLElement {
  const lends = memo(() => classifier.lending() !== "off");
  return el(
    "section",
    { class: "card tabs", "aria-labelledby": "tabs" },
    el("h2", { id: "tabs" }, "Tabs"),
    el("p", { role: "status" }, () => tabWords(classifier)),
    el(
      "div",
      { class: "line" },
      el(
        "button",
        {
          type: "button",
          class: () => (lends() ? "" : "primary"),
          disabled: () => classifier.lending() === "starting",
          onclick: () => (lends() ? classifier.stop() : classifier.start()),
        },
        () => (lends() ? "Stop lending this tab" : "Lend this tab"),
      ),
      // With its opener the new tab has the key too, and the address does not show it.
      el("a", { class: "button", href: "/classify", target: "_blank", rel: "opener" }, "Open another tab"),
      show(classifier.isThere, () =>
        el(
          "button",
          { type: "button", class: "plain", onclick: () => void classifier.remove() },
          "Remove the model",
        ),
      ),
    ),
    el("p", { class: "problem", role: "alert" }, classifier.problem),
  );
}

function tabWords(classifier: Classifier): string {
  const { slices, whole } = classifier.state();
  const count = slices.length;
  if (count >= 2 && slices.every(({ ready }) => ready)) {
    return `${plural(count, "device")} hold the model, a slice each.`;
  }
  if (count >= 2) return `${plural(count, "device")} are loading their slices.`;
  const missing = SLICES - classifier.tabs();
  const more = missing > 0 ? ` Lend ${plural(missing, "more tab")} to have it in ${SLICES} slices.` : "";
  if (whole) return `${whole} has the whole model.${more}`;
  if (classifier.lending() === "off") return `Nothing of this tab is used until you lend it. The model needs ${SLICES} tabs.`;
  return classifier.isThere() ? `The model waits for devices.${more}` : "Adding the model.";
}
