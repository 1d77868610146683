/** Which model is asked, where it runs, who holds it, and how it is to answer. */

import type { LanguageModel, Service } from "@shoal/sdk";

import { bytes } from "../../core/format";
import { type Child, each, el, show } from "../../view/dom";
import { memo } from "../../view/reactive";
import { type Holder, layersWords, wholeOf } from "./holders";
import type { Talk } from "./talk";
import { wayOf, wayTable } from "./way";

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
      () => {
        const service = () => services().find(({ name }) => name === model()?.name);
        return el("div", { class: "chat-about" }, el("p", { class: "quiet" }, () => words(model())), holders(talk, model, service));
      },
    ),
    more(talk),
  );
}

function words(model: LanguageModel | null): string {
  if (!model) return "";
  const millions = Math.round(model.parameters / 1e6);
  return `${model.architecture}, ${millions} million parameters in ${model.quantisation}, up to ${model.context} tokens, ${bytes(model.memory)} of memory`;
}

function holders(talk: Talk, model: () => LanguageModel | null, service: () => Service | undefined): Child {
  const whole = memo(() => wholeOf(model(), service()));
  const way = memo(() => wayOf(model(), service()));
  const state = () => {
    if (talk.where() === "local") return "local";
    return whole().length > 0 || way() ? "held" : "none";
  };
  const quiet = (words: () => string) => el("p", { class: "quiet" }, words);
  const none = () => (service()?.trouble ? `No device holds it: ${service()?.trouble}` : "No device has loaded it yet.");
  return show(state, (is) => {
    if (is === "local") return quiet(() => localWords(model()));
    if (is === "none") return quiet(none);
    return [
      show(
        () => whole().length > 0,
        () => el("ul", { class: "holders", "aria-label": "Devices that hold the model" }, each(whole, ({ node }) => node, holder)),
      ),
      show(
        () => way() !== null,
        () => wayTable(way),
      ),
    ];
  });
}

function holder(one: () => Holder): HTMLElement {
  return el("li", { class: () => (one().ready ? "ready" : "") }, el("b", null, () => one().name), " ", el("span", null, () => layersWords(one())));
}

function localWords(model: LanguageModel | null): string {
  const layers = model ? `all ${model.layers} layers` : "all layers";
  return `This page runs ${layers} itself and loads the model with your first question. Nothing of the conversation leaves this device.`;
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
