/** Which model is asked, where it runs, who holds it, and how it is to answer. */

import type { LanguageModel, Service } from "@shoal/sdk";

import { bytes } from "../../core/format";
import { each, el, show } from "../../view/dom";
import { holdersOf, layersWords } from "./holders";
import type { Talk } from "./talk";

export interface Known {
  talk: Talk;
  models: () => readonly LanguageModel[] | null;
  services: () => readonly Service[];
}

const WHERE = [
  ["remote", "On your devices"],
  ["local", "In this page only"],
] as const;

export function settings({ talk, models, services }: Known): HTMLElement {
  const model = () => models()?.find((one) => one.name === talk.model()) ?? null;
  return el(
    "section",
    { class: "card chat-settings", "aria-label": "Settings" },
    el(
      "div",
      { class: "chat-row" },
      el(
        "label",
        { class: "picker" },
        el("span", { class: "unseen" }, "Model"),
        () =>
          el(
            "select",
            { onchange: (event: Event) => talk.model.set((event.target as HTMLSelectElement).value) },
            (models() ?? []).map((one) => el("option", { value: one.name, selected: one.name === talk.model() }, one.name)),
          ),
      ),
      el("button", { type: "button", onclick: talk.reset }, "New conversation"),
    ),
    show(
      () => model()?.name ?? "",
      () => el("div", { class: "chat-about" }, el("p", { class: "quiet" }, () => words(model())), () => holders(talk, model(), services())),
    ),
    more(talk),
  );
}

function words(model: LanguageModel | null): string {
  if (!model) return "";
  const millions = Math.round(model.parameters / 1e6);
  return `${model.architecture}, ${millions} million parameters in ${model.quantisation}, up to ${model.context} tokens, ${bytes(model.memory)} of memory`;
}

function holders(talk: Talk, model: LanguageModel | null, services: readonly Service[]): HTMLElement | null {
  if (!model) return null;
  if (talk.where() === "local") {
    return el("p", { class: "quiet" }, `This page runs all ${model.layers} layers itself and loads the model with your first question. Nothing of the conversation leaves this device.`);
  }
  const service = services.find((one) => one.name === model.name);
  const found = holdersOf(model, service);
  if (found.length === 0) {
    return el("p", { class: "quiet" }, service?.trouble ? `No device holds it: ${service.trouble}` : "No device has loaded it yet.");
  }
  return el(
    "ul",
    { class: "holders", "aria-label": "Devices that hold the model" },
    each(
      () => found,
      (one) => `${one.node} ${one.layers.join()}`,
      (one) => el("li", { class: () => (one().ready ? "ready" : "") }, el("b", null, () => one().name), " ", el("span", null, () => layersWords(one()))),
    ),
  );
}

function more(talk: Talk): HTMLElement {
  return el(
    "details",
    null,
    el("summary", null, "Settings"),
    el(
      "fieldset",
      { class: "field" },
      el("legend", null, "Where the model runs"),
      el(
        "div",
        { class: "segments" },
        WHERE.map(([value, label]) =>
          el(
            "label",
            null,
            el("input", { type: "radio", name: "where", value, checked: () => talk.where() === value, onchange: () => talk.where.set(value) }),
            el("span", null, label),
          ),
        ),
      ),
    ),
    el(
      "label",
      { class: "field" },
      "Instructions for the model",
      el("textarea", {
        rows: 2,
        value: () => talk.system(),
        oninput: (event: Event) => talk.system.set((event.target as HTMLTextAreaElement).value),
      }),
    ),
    el(
      "label",
      { class: "field" },
      () => `Temperature ${talk.temperature().toFixed(1)}`,
      el("input", {
        type: "range",
        min: 0,
        max: 2,
        step: 0.1,
        value: () => talk.temperature(),
        oninput: (event: Event) => talk.temperature.set(Number((event.target as HTMLInputElement).value)),
      }),
    ),
  );
}
