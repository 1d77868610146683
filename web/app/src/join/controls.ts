/** How much is lent. Every change counts at once. */

import type { Lend } from "@shoal/sdk";

import type { Child } from "../view/dom";
import { el } from "../view/dom";
import type { GpuAnswer } from "./gpu";
import type { Lending } from "./lending";
import { memoryOf, memoryWords, STEP } from "./memory";

const HIDDEN: readonly [NonNullable<Lend["whenHidden"]>, string][] = [
  ["pause", "pause"],
  ["slow", "lend half"],
  ["go on", "keep lending"],
];

export function controls(lending: Lending, gpu: () => GpuAnswer | null): HTMLElement {
  return el(
    "section",
    { class: "card controls", "aria-labelledby": "how-much" },
    el("h2", { id: "how-much" }, "How much you lend"),
    cpuSlider(lending),
    memorySlider(lending),
    gpuSwitch(lending, gpu),
    powerSaver(lending),
  );
}

function powerSaver(lending: Lending): HTMLElement {
  return el(
    "fieldset",
    null,
    el("legend", null, "Power saver"),
    toggle(
      "Pause when the battery is below 30 %",
      batteryNote(),
      () => lending.choices().onLowBattery === "pause",
      (on) => lending.choose({ onLowBattery: on ? "pause" : "go on" }),
    ),
    toggle(
      "Only when plugged in",
      batteryNote(),
      () => lending.choices().onlyPluggedIn,
      (onlyPluggedIn) => lending.choose({ onlyPluggedIn }),
    ),
    el(
      "label",
      { class: "row" },
      el("span", null, "When this tab is in the background"),
      el(
        "select",
        {
          value: () => lending.choices().whenHidden,
          onchange: (event: Event) =>
            lending.choose({
              whenHidden: (event.target as HTMLSelectElement).value as (typeof HIDDEN)[number][0],
            }),
        },
        HIDDEN.map(([value, label]) =>
          el("option", { value, selected: value === lending.choices().whenHidden }, label),
        ),
      ),
    ),
  );
}

function cpuSlider(lending: Lending): HTMLElement {
  const cores = navigator.hardwareConcurrency || 1;
  const share = () => Math.round(100 * lending.choices().cpu);
  const words = () => {
    if (share() === 0) return "no programs";
    const lent = Math.max(1, Math.round((share() / 100) * cores));
    return `${share()} %, ${lent} of ${cores} ${cores === 1 ? "core" : "cores"}`;
  };
  return el(
    "div",
    { class: "slider" },
    el("label", { for: "cpu" }, "CPU share"),
    el("output", { for: "cpu" }, words),
    el("input", {
      id: "cpu",
      type: "range",
      min: 0,
      max: 100,
      step: 5,
      value: () => String(share()),
      "aria-valuetext": words,
      oninput: (event: Event) =>
        lending.choose({ cpu: Number((event.target as HTMLInputElement).value) / 100 }),
    }),
  );
}

function memorySlider(lending: Lending): HTMLElement {
  const device = memoryOf((navigator as Navigator & { deviceMemory?: number }).deviceMemory);
  const lent = () => lending.choices().memory ?? device.usual;
  const words = () => memoryWords(lent(), device);
  return el(
    "div",
    { class: "slider" },
    el("label", { for: "memory" }, "Memory"),
    el("output", { for: "memory" }, words),
    el("input", {
      id: "memory",
      type: "range",
      min: STEP,
      max: device.most,
      step: STEP,
      value: () => String(lent()),
      "aria-valuetext": words,
      oninput: (event: Event) => lending.choose({ memory: Number((event.target as HTMLInputElement).value) }),
    }),
  );
}

function gpuSwitch(lending: Lending, gpu: () => GpuAnswer | null): HTMLElement {
  const missing = () => gpu()?.found === false;
  const note = () => {
    const answer = gpu();
    if (!answer) return "searching …";
    return answer.found ? answer.name : "not available here";
  };
  return toggle(
    "GPU",
    note,
    () => lending.choices().gpu && !missing(),
    (on) => lending.choose({ gpu: on }),
    missing,
  );
}

/** Browsers that do not tell are taken at the donor's word. */
function batteryNote(): Child {
  return "getBattery" in navigator ? null : "this browser does not report its battery, so this has no effect";
}

function toggle(
  label: string,
  note: Child,
  on: () => boolean,
  set: (on: boolean) => void,
  disabled: () => boolean = () => false,
): HTMLElement {
  return el(
    "label",
    { class: "row" },
    el("span", null, label, el("small", null, note)),
    el("input", {
      type: "checkbox",
      role: "switch",
      class: "switch",
      checked: on,
      disabled,
      onchange: (event: Event) => set((event.target as HTMLInputElement).checked),
    }),
  );
}
