/** A button that wants to be pressed twice before it does what cannot be undone. */

import type { Child } from "../view/dom";
import { el } from "../view/dom";
import { signal } from "../view/reactive";

/** How long the second press is waited for. */
const PATIENCE = 4_000;

export function confirmButton(label: Child, ask: string, act: () => void): HTMLElement {
  const asking = signal(false);
  return el(
    "button",
    {
      type: "button",
      class: () => (asking() ? "danger sure" : "danger"),
      onclick: () => {
        if (asking()) act();
        else setTimeout(() => asking.set(false), PATIENCE);
        asking.set(!asking());
      },
    },
    () => (asking() ? ask : label),
  );
}
