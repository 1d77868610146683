/** A detector at work: on a picture, a video or the camera, in this page or on the pool. */

import type { Store } from "../../core/store";
import { el } from "../../view/dom";
import { controls } from "./controls";
import { openDesk } from "./desk";
import { stage } from "./stage";
import { stages } from "./stages";

export function detectPage(store: Store): HTMLElement {
  const desk = openDesk(store);
  return el(
    "main",
    { id: "main", class: "page detect", tabindex: -1 },
    el("div", { class: "columns" }, stage(desk), el("div", { class: "stack side" }, controls(desk), stages(desk))),
  );
}
