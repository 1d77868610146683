/** Services that this device keeps ready for requests. */

import type { ServiceNote } from "@shoal/sdk";

import { bytes } from "../core/format";
import { each, el } from "../view/dom";
import type { Lending } from "./lending";

export const servicesOf = (lending: Lending): ServiceNote[] => lending.status()?.services ?? [];

export function services(lending: Lending): HTMLElement {
  return el(
    "ul",
    { class: "running services", "aria-label": "Kept ready" },
    each(
      () => servicesOf(lending),
      ({ job }) => job,
      row,
    ),
  );
}

function row(service: () => ServiceNote): HTMLElement {
  const { name, owner, memory } = service();
  return el(
    "li",
    null,
    el(
      "div",
      null,
      el("b", null, name),
      owner && [" for ", el("b", null, owner)],
      el("small", null, "a service: kept ready, runs when somebody asks"),
    ),
    el("div", { class: "figures" }, el("small", null, `up to ${bytes(memory)} of memory`)),
  );
}
