/** The playground's settings: inputs, size, parameters, picture. */

import type { Priority, Verify } from "@shoal/sdk";

import { kernelNumbers } from "../../core/kernel-numbers";
import type { Binding, Param } from "../../core/wgsl";
import type { Child } from "../../view/dom";
import { each, el, show } from "../../view/dom";
import type { Signal } from "../../view/reactive";
import { memo, signal } from "../../view/reactive";
import type { Fill, InputSetting, PictureSetting, Settings } from "./settings";
import { changeInput, inputAt, itemsOfFile } from "./settings";

const FILLS: readonly [Fill, string][] = [
  ["ramp", "a ramp"],
  ["noise", "noise"],
  ["wave", "a sine"],
  ["zeros", "zeros"],
  ["file", "a .npy file"],
];
const CHECKS: readonly [Verify, string][] = [
  ["adaptive", "most for new devices"],
  ["quorum:3", "three devices must agree"],
  ["quorum:2", "two devices must agree"],
  ["spot", "one unit in ten"],
  ["none", "not at all"],
];
const PRIORITIES: readonly [Priority, string][] = [
  ["interactive", "high: I am waiting for it"],
  ["normal", "normal"],
  ["batch", "low: when nothing else runs"],
];
const SIZES = [256, 1_024, 4_096, 8_192, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];

export function fields(settings: Settings): HTMLElement {
  const indexed = memo(() => settings.shape().inputs.map((binding, index) => ({ binding, index })));
  return el(
    "div",
    { class: "fields" },
    modeField(settings),
    show(
      settings.picture,
      () => pictureFields(settings),
      () => [
        each(
          indexed,
          (one) => `${one.index} ${one.binding.name}`,
          (one) => inputField(settings, one().index, () => one().binding),
        ),
        show(
          () => itemsOfFile(settings) === null,
          () => sizeField(settings),
        ),
        numberField("Outputs per item", settings.outPerItem, settings.outPerItem.set, 1),
      ],
    ),
    each(
      () => settings.shape().params,
      (param) => `${param.name} ${param.lanes}`,
      (param) => paramField(settings, param()),
    ),
    choiceField("Check answers", CHECKS, settings.verify),
    choiceField("Priority", PRIORITIES, settings.priority),
  );
}

function choiceField<T extends string>(
  label: string,
  options: readonly [T, string][],
  chosen: Signal<T>,
): HTMLElement {
  const take = (event: Event) => {
    const option = options[(event.target as HTMLSelectElement).selectedIndex];
    if (option) chosen.set(option[0]);
  };
  return field(
    label,
    el(
      "select",
      { value: chosen, onchange: take },
      options.map(([value, words]) =>
        el("option", { value, selected: value === chosen() }, words),
      ),
    ),
  );
}

function modeField(settings: Settings): HTMLElement {
  const option = (label: string, picture: boolean) =>
    el(
      "label",
      null,
      el("input", {
        type: "radio",
        name: "mode",
        checked: () => settings.picture() === picture,
        onchange: () => settings.picture.set(picture),
      }),
      el("span", null, label),
    );
  return el(
    "div",
    { class: "segments wide", role: "radiogroup", "aria-label": "What the kernel makes" },
    option("Array", false),
    option("Picture", true),
  );
}

function inputField(settings: Settings, index: number, binding: () => Binding): HTMLElement {
  const at = () => inputAt(settings, index);
  const change = (next: Partial<InputSetting>) => changeInput(settings, index, next);
  return el(
    "fieldset",
    { class: "wide input-field" },
    el(
      "legend",
      null,
      "Input ",
      el("code", null, () => binding().name),
      () => ` of ${typeName(binding())}`,
    ),
    field(
      "Filled with",
      el(
        "select",
        {
          value: () => at().fill,
          onchange: (event: Event) =>
            change({ fill: (event.target as HTMLSelectElement).value as Fill }),
        },
        FILLS.map(([value, label]) =>
          el("option", { value, selected: value === at().fill }, label),
        ),
      ),
    ),
    show(
      () => at().fill === "file",
      () => fileField(change, at),
      () =>
        numberField(
          "Up to",
          () => at().to,
          (to) => change({ to }),
          null,
        ),
    ),
    numberField(
      "Elements per item",
      () => at().perItem,
      (perItem) => change({ perItem }),
      1,
    ),
    el(
      "label",
      { class: "check" },
      el("input", {
        type: "checkbox",
        checked: () => at().whole,
        onchange: (event: Event) => change({ whole: (event.target as HTMLInputElement).checked }),
      }),
      "Send all of it to every unit",
    ),
  );
}

function fileField(
  change: (next: Partial<InputSetting>) => void,
  at: () => InputSetting,
): HTMLElement {
  const problem = signal("");
  const take = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    if (!file) return;
    problem.set("");
    try {
      change({ file: { name: file.name, data: kernelNumbers(await file.arrayBuffer()) } });
    } catch (error) {
      change({ file: null });
      problem.set(`${file.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
  return el(
    "div",
    null,
    field(
      "File",
      el("input", {
        type: "file",
        accept: ".npy",
        onchange: (event: Event) => void take(event.target as HTMLInputElement),
      }),
    ),
    el(
      "small",
      null,
      () =>
        at().file && `${at().file?.name}: ${at().file?.data.length.toLocaleString("en")} numbers`,
    ),
    el("p", { class: "problem", role: "alert" }, problem),
  );
}

function sizeField(settings: Settings): Child {
  return field(
    "Items",
    el(
      "select",
      {
        value: () => String(settings.items()),
        onchange: (event: Event) =>
          settings.items.set(Number((event.target as HTMLSelectElement).value)),
      },
      SIZES.map((size) =>
        el(
          "option",
          { value: size, selected: size === settings.items() },
          size.toLocaleString("en"),
        ),
      ),
    ),
  );
}

function paramField(settings: Settings, param: Param): HTMLElement {
  const set = (text: string) => settings.params.update((old) => ({ ...old, [param.name]: text }));
  return field(
    [el("code", null, param.name), ` ${param.lanes > 1 ? `${param.lanes} × ` : ""}${param.scalar}`],
    el("input", {
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      placeholder: Array.from({ length: param.lanes }, () => "0").join(", "),
      value: () => settings.params()[param.name] ?? "",
      oninput: (event: Event) => set((event.target as HTMLInputElement).value),
    }),
  );
}

function pictureFields(settings: Settings): Child {
  const part = (label: string, key: keyof PictureSetting) =>
    numberField(
      label,
      () => settings.frame()[key],
      (value) => settings.frame.update((old) => ({ ...old, [key]: value })),
      1,
    );
  return [
    part("Width", "width"),
    part("Height", "height"),
    part("Samples", "samples"),
    part("Tile", "tile"),
  ];
}

function numberField(
  label: Child,
  value: () => number,
  set: (value: number) => void,
  least: number | null,
): HTMLElement {
  return field(
    label,
    el("input", {
      type: "number",
      min: least,
      step: least === null ? "any" : 1,
      value: () => String(value()),
      onchange: (event: Event) => {
        const next = Number((event.target as HTMLInputElement).value);
        if (Number.isFinite(next) && (least === null || next >= least)) set(next);
      },
    }),
  );
}

function field(label: Child, input: HTMLElement): HTMLElement {
  return el("label", { class: "field" }, el("span", null, label), input);
}

function typeName(binding: Binding): string {
  return binding.lanes > 1 ? `${binding.lanes} × ${binding.scalar}` : binding.scalar;
}
