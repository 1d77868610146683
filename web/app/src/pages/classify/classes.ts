/** What the model says of the last picture: ten classes as bars. */

import { percent } from "../../core/format";
import { el } from "../../view/dom";
import { memo } from "../../view/reactive";
import { millis } from "./chain";
import { type Classifier, CLASSES } from "./classifier";

export function classes(classifier: Classifier): HTMLElement {
  const score = (at: number) => classifier.answer()?.scores[at] ?? 0;
  const best = memo(() => {
    const scores = classifier.answer()?.scores;
    return scores ? scores.indexOf(Math.max(...scores)) : -1;
  });
  return el(
    "section",
    { class: "card", "aria-labelledby": "answer" },
    el("h2", { id: "answer" }, "Answer"),
    el("p", { class: "verdict", role: "status" }, () => CLASSES[best()] ?? "No picture yet"),
    el(
      "ul",
      { class: "classes" },
      CLASSES.map((name, at) =>
        el(
          "li",
          { class: () => (best() === at ? "best" : "") },
          el("span", null, name),
          el("div", { class: "meter", "aria-hidden": "true" }, el("i", { vars: { "--part": () => `${100 * score(at)}%` } })),
          el("span", { class: "share" }, () => percent(score(at), 1)),
        ),
      ),
    ),
    el("p", { class: "quiet" }, () => {
      const answer = classifier.answer();
      if (!answer) return "";
      const through = answer.slices > 1 ? `through ${answer.slices} slices` : "by one device";
      return `${millis(answer.ms)} ${through}, from asking to the answer.`;
    }),
  );
}
