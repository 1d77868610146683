/** The join link, to click, copy or scan. */

import type { Shoal } from "@shoal/sdk";

import type { Store } from "../../core/store";
import { icon } from "../../parts/icons";
import type { Child } from "../../view/dom";
import { el, show } from "../../view/dom";
import { onCleanup, signal } from "../../view/reactive";

export function inviteCard(store: Store): HTMLElement {
  return el(
    "section",
    { class: "card invite", "aria-labelledby": "invite" },
    el("h2", { id: "invite" }, "Invite a device"),
    show(() => store.pool()?.reachable === false, alone, inviting),
    show(
      () => store.pool()?.join,
      (url) => link(url, store.shoal),
    ),
  );
}

function inviting(): HTMLElement {
  return el("p", { class: "quiet" }, "Scan or open this link. A browser tab is all it takes.");
}

/** Nobody should scan what no phone can open. */
function alone(): HTMLElement {
  return el(
    "p",
    { class: "quiet" },
    "This link works on this machine only, because the coordinator listens on no address that other devices reach. " +
      "To invite them, start it with ",
    el("code", null, "--listen 0.0.0.0:7420"),
    " on a machine in their network.",
  );
}

function link(url: string, shoal: Shoal): Child {
  const copied = signal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(url);
    copied.set(true);
    setTimeout(() => copied.set(false), 2_000);
  };
  return [
    picture(shoal),
    el("a", { class: "link", href: url, target: "_blank", rel: "noopener" }, url),
    el(
      "button",
      { type: "button", onclick: () => void copy() },
      icon("copy"),
      el("span", { "aria-live": "polite" }, () => (copied() ? "Copied" : "Copy link")),
    ),
  ];
}

/** Comes by itself and late or never; the link works without it. */
function picture(shoal: Shoal): HTMLElement {
  const image = el("img", { class: "qr", alt: "QR code of the join link", hidden: true });
  let address = "";
  let isGone = false;
  onCleanup(() => {
    isGone = true;
    URL.revokeObjectURL(address);
  });
  const draw = async () => {
    const file = await shoal.joinCode();
    if (isGone) return;
    address = image.src = URL.createObjectURL(file);
    image.hidden = false;
  };
  draw().catch((error: unknown) => console.warn("the QR code did not come:", error));
  return image;
}
