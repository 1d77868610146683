/** Talk to a language model of the pool. */

import type { LanguageModel, Service } from "@shoal/sdk";

import { bytes } from "../../core/format";
import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import { each, el, show } from "../../view/dom";
import { effect, every, root, signal } from "../../view/reactive";
import type { Said, Talk } from "./talk";
import { openTalk } from "./talk";

/** How often the list of models and who holds them is looked at. */
const LOOK_EVERY = 2_000;

interface Desk {
  talk: Talk;
  models: () => readonly LanguageModel[] | null;
  services: () => readonly Service[];
  refresh: () => Promise<void>;
}

/** Outlives the page: going elsewhere and back keeps the conversation. */
const desks = new WeakMap<Store, Desk>();

function deskOf(store: Store): Desk {
  const known = desks.get(store);
  if (known) return known;
  const [desk] = root((): Desk => {
    const models = signal<readonly LanguageModel[] | null>(null);
    const services = signal<readonly Service[]>([]);
    const talk = openTalk(store);
    const refresh = async () => {
      try {
        const [found, all] = await Promise.all([store.shoal.languageModels(), store.shoal.services()]);
        const chats = found.filter((model) => model.chats);
        // The same list is left alone, or an open choice would close.
        if (JSON.stringify(chats) !== JSON.stringify(models())) models.set(chats);
        if (JSON.stringify(all) !== JSON.stringify(services())) services.set(all);
        if (!chats.some((model) => model.name === talk.model())) talk.model.set(chats[0]?.name ?? "");
      } catch {
        // The header says that the connection is lost.
      }
    };
    return { talk, models, services, refresh };
  });
  desks.set(store, desk);
  return desk;
}

export function chat(store: Store): HTMLElement {
  const desk = deskOf(store);
  const { talk, models } = desk;
  void desk.refresh();
  every(LOOK_EVERY, () => void desk.refresh());
  return el(
    "main",
    { id: "main", class: "page chat", tabindex: -1 },
    el("h1", { class: "unseen" }, "Chat"),
    show(
      () => (models() === null ? "loading" : models()?.length === 0 ? "none" : "some"),
      (state) => (state === "some" ? [settings(desk), conversation(talk), composer(talk)] : state === "none" && none()),
    ),
  );
}

function none(): HTMLElement {
  return el(
    "section",
    { class: "card" },
    el("h2", null, "No language model yet"),
    el("p", null, "Add a GGUF file from a terminal on this machine:"),
    el("pre", null, "shoal model add FILE.gguf"),
    el("p", { class: "quiet" }, "It appears here as soon as a device has loaded it."),
  );
}

function settings(desk: Desk): HTMLElement {
  const { talk, models } = desk;
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
        el("span", null, "Model"),
        () =>
          el(
            "select",
            { onchange: (event: Event) => talk.model.set((event.target as HTMLSelectElement).value) },
            (models() ?? []).map((one) => el("option", { value: one.name, selected: one.name === talk.model() }, one.name)),
          ),
      ),
      el("button", { type: "button", onclick: talk.reset }, "New conversation"),
    ),
    el("p", { class: "quiet" }, () => {
      const about = model();
      return about && aboutWords(about);
    }),
    el("p", { class: "quiet holders" }, () => {
      const about = model();
      return about && holders(about, desk.services());
    }),
    el(
      "details",
      null,
      el("summary", null, "Instructions and temperature"),
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
    ),
  );
}

function aboutWords(model: LanguageModel): string {
  const millions = Math.round(model.parameters / 1e6);
  return `${model.architecture}, ${millions} million parameters in ${model.quantisation}, up to ${model.context} tokens, ${bytes(model.memory)} of memory`;
}

/** Which devices hold which layers. */
function holders(model: LanguageModel, services: readonly Service[]): string {
  const service = services.find((one) => one.name === model.name);
  const ready = service?.replicas.filter((replica) => replica.ready) ?? [];
  if (ready.length === 0) {
    return service?.trouble ? `No device holds it: ${service.trouble}` : "No device has loaded it yet.";
  }
  return ready.map((replica) => `${replica.name} holds layers 1 to ${model.layers}`).join("; ");
}

function conversation(talk: Talk): HTMLElement {
  const list = el(
    "ol",
    { class: "said", "aria-label": "Conversation" },
    each(talk.said, (one) => one.id, turn),
  );
  // Follows the answer, unless the reader has scrolled away.
  effect(() => {
    talk.said();
    const rest = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (rest < 160) queueMicrotask(() => list.lastElementChild?.scrollIntoView({ block: "nearest" }));
  });
  return el(
    "section",
    { class: "chat-said", "aria-label": "What was said" },
    list,
    el("p", { class: "unseen", role: "status" }, talk.spoken),
    el("p", { class: "problem", role: "alert" }, talk.problem),
  );
}

function turn(one: () => Said): HTMLElement {
  const own = one().role === "user";
  return el(
    "li",
    { class: own ? "own" : "answer" },
    el("span", { class: "who" }, own ? "You" : "Model"),
    el("div", { class: "text" }, () => one().text || (own ? "" : "…")),
    el("small", { class: "quiet" }, () => one().note),
  );
}

function composer(talk: Talk): HTMLElement {
  const field = el("textarea", {
    id: "prompt",
    rows: 2,
    placeholder: "Ask something",
    "aria-label": "Your message",
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
      if (event.key === "Escape") talk.stop();
    },
  });
  const send = () => {
    if (talk.busy() || !field.value.trim()) return;
    talk.ask(field.value);
    field.value = "";
  };
  return el(
    "form",
    {
      class: "composer",
      onsubmit: (event: SubmitEvent) => {
        event.preventDefault();
        send();
      },
    },
    field,
    () =>
      talk.busy()
        ? el("button", { type: "button", class: "danger", onclick: talk.stop }, icon("stop"), "Stop")
        : el("button", { type: "submit", class: "primary" }, icon("play"), "Send"),
  );
}
