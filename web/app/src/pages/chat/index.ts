/** Talk to a language model of the pool. */

import type { LanguageModel, Service } from "@shoal/sdk";

import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import { each, el, show } from "../../view/dom";
import { effect, every, onCleanup, root, signal } from "../../view/reactive";
import { type Known, settings } from "./settings";
import type { Said, Talk } from "./talk";
import { openTalk } from "./talk";

/** Pixels from the end of the page within which somebody reads along. */
const NEAR = 80;
/** How often the list of models and who holds them is looked at. */
const LOOK_EVERY = 2_000;

interface Desk extends Known {
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

function conversation(talk: Talk): HTMLElement {
  const list = el(
    "ol",
    { class: "said", "aria-label": "Conversation" },
    each(talk.said, (one) => one.id, turn),
  );
  follow(talk);
  return el(
    "section",
    { class: "chat-said", "aria-label": "What was said" },
    list,
    el("p", { class: "unseen", role: "status" }, talk.spoken),
    el("p", { class: "problem", role: "alert" }, talk.problem),
  );
}

/** Keeps the end in sight while an answer grows, unless the reader has scrolled away. A new question brings it back. */
function follow(talk: Talk): void {
  const end = () => document.documentElement.scrollHeight - innerHeight;
  let [isAtEnd, turns] = [true, 0];
  const look = () => (isAtEnd = end() - scrollY < NEAR);
  addEventListener("scroll", look, { passive: true });
  onCleanup(() => removeEventListener("scroll", look));
  effect(() => {
    const { length } = talk.said();
    if (length > turns) isAtEnd = true;
    turns = length;
    if (length > 0 && isAtEnd) requestAnimationFrame(() => scrollTo({ top: end() }));
  });
}

function turn(one: () => Said): HTMLElement {
  const own = one().role === "user";
  return el(
    "li",
    { class: own ? "own" : "answer" },
    el("span", { class: "who" }, own ? "You" : "Model"),
    el("div", { class: "text" }, () => one().text || (own ? "" : "…")),
    el("small", { class: "note" }, () => one().note),
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
