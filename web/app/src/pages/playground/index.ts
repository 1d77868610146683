/** Edit a kernel, run it over the pool, see what comes out. */

import type { Store } from "../../core/store";
import { editor } from "../../parts/editor";
import { icon } from "../../parts/icons";
import { el } from "../../view/dom";
import { root } from "../../view/reactive";
import { fields } from "./fields";
import { output } from "./output";
import type { Phase, Runner } from "./run";
import { openRunner } from "./run";
import { SAMPLES } from "./samples";
import type { Settings } from "./settings";
import { openSettings } from "./settings";

const BUSY: ReadonlySet<Phase> = new Set<Phase>(["sending", "running", "fetching"]);

export function playground(store: Store): HTMLElement {
  const { settings, runner } = deskOf(store);
  const busy = () => BUSY.has(runner.phase());
  const edit = (text: string) => {
    settings.source.set(text);
    // The marked line is about the text as it was.
    if (runner.problem()) runner.problem.set(null);
  };
  return el(
    "main",
    { id: "main", class: "page playground", tabindex: -1 },
    el("h1", { class: "unseen" }, "Playground"),
    el(
      "div",
      { class: "columns even" },
      el(
        "section",
        { class: "card", "aria-labelledby": "kernel" },
        el("div", { class: "head" }, el("h2", { id: "kernel" }, "Kernel"), samplePicker(settings)),
        editor({
          id: "source",
          label: "WGSL kernel",
          text: settings.source,
          onchange: edit,
          badLine: () => runner.problem()?.line ?? null,
          onrun: runner.start,
        }),
        fields(settings),
        el(
          "div",
          { class: "actions" },
          el(
            "button",
            { type: "button", class: "primary", disabled: busy, onclick: runner.start },
            icon("play"),
            "Run",
          ),
          el(
            "button",
            { type: "button", class: "danger", disabled: () => !busy(), onclick: runner.stop },
            icon("stop"),
            "Stop",
          ),
          el("span", { class: "quiet" }, () => poolWords(store)),
        ),
      ),
      output(store, settings, runner),
    ),
  );
}

interface Desk {
  settings: Settings;
  runner: Runner;
}

/** Outlives the page: going to the job and back keeps the kernel, and the run goes on. */
const desks = new WeakMap<Store, Desk>();

function deskOf(store: Store): Desk {
  const known = desks.get(store);
  if (known) return known;
  const [desk] = root(() => {
    const settings = openSettings(SAMPLES[0] ?? { name: "Empty", source: "" });
    return { settings, runner: openRunner(store, settings) };
  });
  desks.set(store, desk);
  return desk;
}

function samplePicker(settings: Settings): HTMLElement {
  return el(
    "label",
    { class: "picker" },
    el("span", { class: "unseen" }, "Start from a sample"),
    el(
      "select",
      {
        onchange: (event: Event) => {
          const sample = SAMPLES[(event.target as HTMLSelectElement).selectedIndex];
          if (sample) settings.take(sample);
        },
      },
      SAMPLES.map((sample) =>
        el("option", { selected: sample.source === settings.source() }, sample.name),
      ),
    ),
  );
}

function poolWords(store: Store): string {
  const gpus = store.nodes().filter((node) => node.gpu && !node.paused).length;
  if (gpus === 0) return "No device with a GPU has joined yet. A job will wait for one.";
  return gpus === 1 ? "on 1 device with a GPU" : `on ${gpus} devices with a GPU`;
}
