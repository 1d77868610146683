/** Asks for the API key when the address brought none, or the one it brought was refused. */

import { icon } from "../parts/icons";
import { el } from "../view/dom";

export function keyPage(refused: boolean, accept: (key: string) => void): HTMLElement {
  const field = el("input", {
    id: "key",
    type: "password",
    name: "key",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
    "aria-describedby": "key-help",
    "aria-invalid": refused ? "true" : null,
  });
  return el(
    "main",
    { id: "main", class: "page narrow", tabindex: -1 },
    el(
      "form",
      {
        class: "card key",
        onsubmit: (event: SubmitEvent) => {
          event.preventDefault();
          if (field.value.trim()) accept(field.value.trim());
        },
      },
      el("h1", null, icon("key"), "This pool needs a key"),
      refused && el("p", { class: "problem", role: "alert" }, "The coordinator refused that key."),
      el("label", { for: "key" }, "API key"),
      field,
      el(
        "p",
        { id: "key-help", class: "quiet" },
        "It is part of the dashboard link that ",
        el("code", null, "shoal up"),
        " prints, after ",
        el("code", null, "#key="),
        ". It stays in this tab and is forgotten when you close the tab.",
      ),
      el("button", { type: "submit", class: "primary" }, "Open the dashboard"),
    ),
  );
}
