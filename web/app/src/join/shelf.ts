/** What this browser keeps for its tabs, and the way to be rid of it. */

import { shelf } from "@shoal/sdk";

import { bytes } from "../core/format";
import { el } from "../view/dom";
import { every, signal } from "../view/reactive";

/** Nobody watches this number; it should be right when looked at. */
const REFRESH = 5_000;

export function shelfLine(): HTMLElement {
  const size = signal(0);
  const look = async () => size.set(await shelf.size());
  const clear = async () => {
    await shelf.clear();
    await look();
  };
  void look();
  every(REFRESH, () => document.hidden || void look());
  return el(
    "p",
    { class: "quiet shelf", hidden: () => size() === 0 },
    () => `This browser keeps ${bytes(size())} of programs and inputs, so that it downloads them only once. `,
    el("button", { type: "button", class: "plain", onclick: () => void clear() }, "Remove them"),
  );
}
