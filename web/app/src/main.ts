/** The dashboard app: finds the key, opens the store, shows the page the address names. */

import "./style/app.css";

import { Shoal } from "@shoal/sdk";

import { listen, route } from "./core/route";
import type { LinkState, Store } from "./core/store";
import { openStore } from "./core/store";
import { chat } from "./pages/chat";
import { classifyPage } from "./pages/classify";
import { dashboard } from "./pages/dashboard";
import { detectPage } from "./pages/detect";
import { jobPage } from "./pages/job";
import { keyPage } from "./pages/key";
import { playground } from "./pages/playground";
import { logo } from "./parts/icons";
import type { Child } from "./view/dom";
import { el, mount } from "./view/dom";
import { memo, signal, untracked } from "./view/reactive";

const KEY = "shoal.key";

const LINK_WORDS: Record<LinkState, string> = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost, trying again",
  // The page itself says so and asks for another key.
  refused: "",
};

function start(): void {
  const store = signal<Store | null>(null);
  const accept = (key: string) => {
    sessionStorage.setItem(KEY, key);
    store()?.close();
    store.set(openStore(new Shoal(location.origin, key)));
  };
  const key = takeKey() ?? sessionStorage.getItem(KEY);
  if (key) accept(key);
  // A dashboard link pasted into this tab only changes what follows the #.
  addEventListener("hashchange", () => {
    const next = takeKey();
    if (next) accept(next);
  });
  listen();
  const place = document.getElementById("app");
  if (place) mount(place, () => [header(store), () => page(store(), accept)]);
}

/** The key from the address, which is cleaned so that it is not copied or kept in the history. */
function takeKey(): string | null {
  const found = /^#key=(.+)$/.exec(location.hash)?.[1];
  if (!found) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return decodeURIComponent(found);
}

function header(store: () => Store | null): Child {
  const link = () => store()?.link() ?? null;
  const at = (page: string) => (route().page === page ? "page" : null);
  return [
    el("a", { class: "skip", href: "#main" }, "Skip to content"),
    el(
      "header",
      { class: "bar-top" },
      el("a", { class: "brand", href: "/" }, logo(), "Shoal"),
      el(
        "nav",
        { "aria-label": "Pages", hidden: () => link() === null || link() === "refused" },
        el("a", { href: "/", "aria-current": () => at("dashboard") }, "Dashboard"),
        el("a", { href: "/playground", "aria-current": () => at("playground") }, "Playground"),
        el("a", { href: "/chat", "aria-current": () => at("chat") }, "Chat"),
        el("a", { href: "/detect", "aria-current": () => at("detect") }, "Detect"),
        el("a", { href: "/classify", "aria-current": () => at("classify") }, "Classifier"),
      ),
      el("span", { class: () => `link-state ${link() ?? ""}`, role: "status" }, () => {
        const state = link();
        return state && LINK_WORDS[state];
      }),
    ),
  ];
}

function page(store: Store | null, accept: (key: string) => void): Child {
  if (!store) return keyPage(false, accept);
  const refused = memo(() => store.link() === "refused");
  let first = true;
  return () => {
    if (refused()) return keyPage(true, accept);
    const shown = body(store);
    // A new page begins at its top for those who cannot see that it changed.
    if (!first) queueMicrotask(() => shown.focus({ preventScroll: true }));
    first = false;
    return shown;
  };
}

function body(store: Store): HTMLElement {
  const at = route();
  return untracked(() => {
    switch (at.page) {
      case "dashboard":
        document.title = "Shoal";
        return dashboard(store);
      case "job":
        document.title = `Job ${at.id} · Shoal`;
        return jobPage(store, at.id);
      case "playground":
        document.title = "Playground · Shoal";
        return playground(store);
      case "chat":
        document.title = "Chat · Shoal";
        return chat(store);
      case "detect":
        document.title = "Detect · Shoal";
        return detectPage(store);
      case "classify":
        document.title = "Classifier · Shoal";
        return classifyPage(store);
      case "unknown":
        document.title = "Not found · Shoal";
        return el(
          "main",
          { id: "main", class: "page narrow", tabindex: -1 },
          el(
            "section",
            { class: "card" },
            el("h1", null, "There is no such page"),
            el("p", null, at.path),
            el("a", { href: "/" }, "Back to the dashboard"),
          ),
        );
    }
  });
}

start();
