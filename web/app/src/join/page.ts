/** The join page: what this is, one button, and everything a donor may want to see or set. */

import { icon, logo } from "../parts/icons";
import type { Child } from "../view/dom";
import { el, show } from "../view/dom";
import { memo, signal } from "../view/reactive";
import { controls } from "./controls";
import type { GpuAnswer } from "./gpu";
import { askGpu } from "./gpu";
import { history } from "./history";
import type { Lending } from "./lending";
import { live } from "./live";
import { sandbox } from "./sandbox";
import { whose } from "./whose";
import { stateWords } from "./words";

export function joinPage(lending: Lending, hasToken: boolean): Child {
  const gpu = signal<GpuAnswer | null>(null);
  void askGpu().then(gpu.set);
  return [
    el("header", { class: "bar-top" }, el("span", { class: "brand" }, logo(), "Shoal")),
    el(
      "main",
      { class: "page join" },
      hero(lending, hasToken, gpu),
      show(
        () => lending.stage() !== "off",
        () => live(lending),
      ),
      whose(lending),
      controls(lending, gpu),
      sandbox(),
      history(lending),
    ),
  ];
}

function hero(lending: Lending, hasToken: boolean, gpu: () => GpuAnswer | null): HTMLElement {
  return el(
    "section",
    { class: () => `card hero ${lending.stage()}` },
    el("h1", null, () =>
      lending.stage() === "on" && lending.status()?.node !== undefined
        ? "You are lending this device"
        : "Lend this device",
    ),
    el(
      "p",
      { class: "lead" },
      "Many devices together make one computer. Press the button, and this tab works on jobs ",
      "that people send to ",
      el("b", null, location.host),
      ", for as long as you let it. Nothing is installed.",
    ),
    show(gpu, gpuNotice),
    () => message(lending, hasToken),
    buttons(lending, hasToken),
    el(
      "p",
      {
        class: () => `status ${lending.stage() === "on" ? (lending.status()?.state ?? "") : ""}`,
        role: "status",
      },
      () => stateWords(lending.stage(), lending.status()),
    ),
  );
}

function gpuNotice(gpu: GpuAnswer): Child {
  if (gpu.found) return null;
  return el(
    "p",
    { class: "notice" },
    el("b", null, gpu.why),
    " You can still join: this device then runs WebAssembly programs, but no GPU kernels.",
  );
}

function message(lending: Lending, hasToken: boolean): Child {
  if (!hasToken) {
    return el(
      "p",
      { class: "notice bad", role: "alert" },
      el("b", null, "This link is incomplete."),
      " The part after the # is missing. Ask for the full join link, or scan its QR code.",
    );
  }
  const problem = lending.problem();
  if (!problem) return null;
  return el(
    "p",
    { class: "notice bad", role: "alert" },
    el(
      "b",
      null,
      lending.status()?.node === undefined ? "This device could not join." : "Lending ended.",
    ),
    ` ${sentence(problem)}`,
  );
}

/** One button for both, so that the keyboard stays where it is. */
function buttons(lending: Lending, hasToken: boolean): HTMLElement {
  const off = memo(() => lending.stage() === "off");
  const resting = memo(() => lending.status()?.reason === "paused by you");
  const press = (event: Event) => {
    if (off()) lending.start();
    // The second click of a double click is not a change of mind.
    else if (!(event instanceof MouseEvent) || event.detail < 2) lending.stop();
  };
  return el(
    "div",
    { class: "buttons" },
    el(
      "button",
      {
        type: "button",
        class: () => (off() ? "primary huge" : "stop huge"),
        disabled: !hasToken,
        onclick: press,
      },
      () => icon(off() ? "play" : "stop"),
      () => (off() ? "Lend this device" : "Stop now"),
    ),
    el(
      "button",
      {
        type: "button",
        hidden: () => lending.stage() !== "on",
        onclick: () => lending.pause(!resting()),
      },
      () => (resting() ? "Resume" : "Pause"),
    ),
  );
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
