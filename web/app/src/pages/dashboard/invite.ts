/** The join link, to click, copy or scan. */

import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import type { Modules } from "../../parts/qr";
import { qrCode } from "../../parts/qr";
import type { Child } from "../../view/dom";
import { el, show, svg } from "../../view/dom";
import { signal } from "../../view/reactive";

/** Blank modules around a code, as scanners expect. */
const QUIET = 4;

export function inviteCard(store: Store): HTMLElement {
  return el(
    "section",
    { class: "card invite", "aria-labelledby": "invite" },
    el("h2", { id: "invite" }, "Invite a device"),
    el("p", { class: "quiet" }, "Scan or open this link. A browser tab is all it takes."),
    show(() => store.pool()?.join, link),
  );
}

function link(url: string): Child {
  const copied = signal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(url);
    copied.set(true);
    setTimeout(() => copied.set(false), 2_000);
  };
  return [
    picture(url),
    el("a", { class: "link", href: url, target: "_blank", rel: "noopener" }, url),
    el(
      "button",
      { type: "button", onclick: () => void copy() },
      icon("copy"),
      el("span", { "aria-live": "polite" }, () => (copied() ? "Copied" : "Copy link")),
    ),
  ];
}

function picture(url: string): Child {
  let modules: Modules;
  try {
    modules = qrCode(url);
  } catch {
    // Too long for a code one could scan; the link itself still works.
    return null;
  }
  const size = modules.length + 2 * QUIET;
  const path = modules
    .map((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : "")).join(""))
    .join("");
  return svg(
    "svg",
    {
      class: "qr",
      role: "img",
      "aria-label": "QR code of the join link",
      viewBox: `${-QUIET} ${-QUIET} ${size} ${size}`,
    },
    svg("path", { d: path }),
  );
}
