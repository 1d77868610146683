/** Whose work runs on this device, and whose does not: every choice counts at once and can be undone here. */

import { shortKey } from "../core/format";
import { each, el, show } from "../view/dom";
import { signal } from "../view/reactive";
import type { Lending } from "./lending";
import type { Signer } from "./rules";
import { isKey } from "./rules";

const VERDICTS: Record<Signer["verdict"], string> = {
  runs: "may run",
  only: "may run: you allowed this key",
  never: "never runs here",
  "left out": "does not run: you allowed only certain keys",
};

export function whose(lending: Lending): HTMLElement {
  const limited = () => lending.signers().some(({ verdict }) => verdict === "only");
  return el(
    "section",
    { class: "card", "aria-labelledby": "whose" },
    el("h2", { id: "whose" }, "Whose work runs here"),
    el(
      "p",
      { class: "quiet", role: "status" },
      () =>
        limited()
          ? "Only work signed with the keys you allowed runs here."
          : "All work that the coordinator sends runs here, except work signed with keys you refused.",
      " Every kernel and program is signed, and this tab checks the signature before it runs any code.",
    ),
    el(
      "ul",
      { class: "running signers" },
      each(
        lending.signers,
        ({ key }) => key,
        (signer) => row(lending, signer),
      ),
    ),
    addKey(lending),
  );
}

function row(lending: Lending, signer: () => Signer): HTMLElement {
  const { key } = signer();
  const label = shortKey(key);
  return el(
    "li",
    null,
    el(
      "div",
      null,
      el("code", { title: key }, label),
      el("small", { hidden: () => !signer().isCoordinator }, "the coordinator's own key: the code came unsigned"),
      el("small", null, () => signer().note || "nothing signed with this key has run here yet"),
      el("small", { class: () => `verdict ${signer().verdict}` }, () => VERDICTS[signer().verdict]),
    ),
    el(
      "div",
      { class: "choices", role: "group", "aria-label": `The key ${label}` },
      choice(lending, signer, "never", "Never run", "Never run work signed with this key"),
      choice(lending, signer, "only", "Only these", "Only these keys: run only work signed with this key or another key you allowed"),
    ),
  );
}

/** Pressed while it holds; pressed again it is undone. */
function choice(
  lending: Lending,
  signer: () => Signer,
  verdict: "never" | "only",
  words: string,
  meaning: string,
): HTMLElement {
  const holds = () => signer().verdict === verdict;
  return el(
    "button",
    {
      type: "button",
      class: () => (holds() ? "chosen" : ""),
      title: meaning,
      "aria-label": meaning,
      "aria-pressed": () => String(holds()),
      onclick: () => lending.decide(signer().key, holds() ? "free" : verdict),
    },
    words,
  );
}

/** For a key that somebody told the donor, before anything of theirs came. */
function addKey(lending: Lending): HTMLElement {
  const problem = signal("");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.target as HTMLFormElement;
    const field = form.elements.namedItem("key") as HTMLInputElement;
    const key = field.value.trim().toLowerCase();
    const asked = event.submitter?.getAttribute("value") === "never" ? "never" : "only";
    problem.set(isKey(key) ? "" : "A key has 64 characters: 0 to 9 and a to f.");
    if (!isKey(key)) return field.focus();
    lending.decide(key, asked);
    form.reset();
  };
  return el(
    "details",
    { class: "add-key" },
    el("summary", null, "Enter a key"),
    el(
      "form",
      { onsubmit: submit },
      el("label", { for: "new-key" }, "Public key"),
      el("input", {
        id: "new-key",
        name: "key",
        autocomplete: "off",
        spellcheck: "false",
        autocapitalize: "none",
        "aria-describedby": "new-key-problem",
      }),
      el(
        "div",
        { class: "choices" },
        el("button", { type: "submit", value: "only" }, "Only these"),
        el("button", { type: "submit", value: "never" }, "Never run"),
      ),
      el("p", { id: "new-key-problem", class: "problem", role: "alert" }, problem),
    ),
    show(
      () => lending.status()?.identity,
      (identity) =>
        el(
          "p",
          { class: "quiet" },
          "The coordinator recognises this tab by its key: ",
          el("code", { title: identity }, shortKey(identity)),
        ),
    ),
  );
}
