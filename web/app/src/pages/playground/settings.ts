/** What the playground's fields hold. */

import type { Priority, Verify } from "@shoal/sdk";

import type { NumberArray } from "../../core/kernel-numbers";
import type { KernelShape } from "../../core/wgsl";
import { kernelShape } from "../../core/wgsl";
import type { Signal } from "../../view/reactive";
import { memo, signal } from "../../view/reactive";
import type { Sample } from "./samples";

export type Fill = "ramp" | "noise" | "wave" | "zeros" | "file";
export type View = "line" | "heat" | "points";

export interface InputSetting {
  fill: Fill;
  /** Generated numbers reach from 0 (or its negative) to this. */
  to: number;
  /** Every unit gets all of it. */
  whole: boolean;
  /** Elements for each item. */
  perItem: number;
  file: { name: string; data: NumberArray } | null;
}

export interface PictureSetting {
  width: number;
  height: number;
  samples: number;
  tile: number;
}

export interface Settings {
  /** What the job is called. */
  title: Signal<string>;
  source: Signal<string>;
  shape: () => KernelShape;
  picture: Signal<boolean>;
  items: Signal<number>;
  inputs: Signal<readonly InputSetting[]>;
  outPerItem: Signal<number>;
  params: Signal<Readonly<Record<string, string>>>;
  view: Signal<View>;
  frame: Signal<PictureSetting>;
  verify: Signal<Verify>;
  priority: Signal<Priority>;
  take(sample: Sample): void;
}

export const NO_INPUT: InputSetting = { fill: "ramp", to: 1, whole: false, perItem: 1, file: null };
const FRAME: PictureSetting = { width: 640, height: 360, samples: 4, tile: 64 };
const ITEMS = 65_536;

export function openSettings(first: Sample): Settings {
  const source = signal("");
  const settings: Settings = {
    title: signal(""),
    source,
    shape: memo(() => kernelShape(source())),
    picture: signal(false),
    items: signal(ITEMS),
    inputs: signal<readonly InputSetting[]>([]),
    outPerItem: signal(1),
    params: signal<Readonly<Record<string, string>>>({}),
    view: signal<View>("line"),
    frame: signal(FRAME),
    verify: signal<Verify>("adaptive"),
    priority: signal<Priority>("interactive"),
    take: (sample) => {
      source.set(sample.source);
      settings.title.set(sample.name.replace(/:.*/, "").toLowerCase());
      settings.picture.set(sample.picture !== undefined);
      settings.items.set(sample.items ?? ITEMS);
      settings.inputs.set((sample.inputs ?? []).map((input) => ({ ...NO_INPUT, ...input })));
      settings.outPerItem.set(sample.outPerItem ?? 1);
      settings.params.set(sample.params ?? {});
      settings.view.set(sample.view ?? "line");
      settings.frame.set({ ...FRAME, ...sample.picture });
    },
  };
  settings.take(first);
  return settings;
}

/** The setting of one input, also of one the user just wrote into the kernel. */
export function inputAt(settings: Settings, index: number): InputSetting {
  return settings.inputs()[index] ?? NO_INPUT;
}

export function changeInput(
  settings: Settings,
  index: number,
  change: Partial<InputSetting>,
): void {
  settings.inputs.update((old) => {
    const next = Array.from(
      { length: Math.max(old.length, index + 1) },
      (_, i) => old[i] ?? NO_INPUT,
    );
    next[index] = { ...NO_INPUT, ...old[index], ...change };
    return next;
  });
}

/** How many items a run has: what a file holds, or what was chosen. */
export function itemsOf(settings: Settings): number {
  return itemsOfFile(settings) ?? settings.items();
}

/** The items of the first file that is split over the units, if there is one. */
export function itemsOfFile(settings: Settings): number | null {
  for (const [index, { lanes }] of settings.shape().inputs.entries()) {
    const { fill, whole, file, perItem } = inputAt(settings, index);
    if (fill === "file" && !whole) return Math.floor((file?.data.length ?? 0) / (lanes * perItem));
  }
  return null;
}
