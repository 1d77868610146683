/** What lent work may do here, and what it cannot. */

import { icon } from "../parts/icons";
import { el } from "../view/dom";

const CAN = [
  "use the share of CPU and GPU you set above",
  "read the inputs that belong to the job, and send its results back",
  "use up to as much memory and time as its job was granted",
];
const CANNOT = [
  "see your files, your other tabs, your camera, microphone or place",
  "reach the network, or any device in your home: kernels and programs have no network at all",
  "run at all if its signature is wrong, or if it is signed with a key you refused",
  "go on after you press Stop or close this tab",
  "stay when it breaks its limits: then it is ended, and you are told here",
];

export function sandbox(): HTMLElement {
  return el(
    "section",
    { class: "card sandbox", "aria-labelledby": "sandbox" },
    el("h2", { id: "sandbox" }, icon("shield"), "What the work can do, and cannot"),
    el(
      "div",
      null,
      el("h3", null, "It can"),
      el(
        "ul",
        null,
        CAN.map((line) => el("li", null, line)),
      ),
    ),
    el(
      "div",
      null,
      el("h3", null, "It cannot"),
      el(
        "ul",
        { class: "not" },
        CANNOT.map((line) => el("li", null, line)),
      ),
    ),
    el(
      "p",
      { class: "quiet" },
      "Work is either a GPU kernel in WGSL, checked before it is sent out, or a WebAssembly program. ",
      "Both run inside your browser's own sandbox. The coordinator sees the names of your browser and ",
      "your GPU and your network address, as any site does. Who runs the coordinator decides which jobs ",
      "are sent, so join only those you trust with your electricity.",
    ),
  );
}
