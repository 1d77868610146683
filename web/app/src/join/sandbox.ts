/** What lent work may do here, and what it cannot. */

import { icon } from "../parts/icons";
import { el } from "../view/dom";

const CAN = [
  "use the share of CPU and GPU you set above",
  "read the inputs that belong to the job, and send its results back",
  "use memory and time, up to the limits of its job",
];
const CANNOT = [
  "see your files, your other tabs, your camera, microphone or location",
  "reach the network, or any device in your home: kernels and programs have no network access at all",
  "run if its signature is wrong, or if it is signed with a key you refused",
  "continue after you press Stop or close this tab",
  "exceed its limits: if it tries, it is stopped, and this page tells you",
];

export function sandbox(): HTMLElement {
  return el(
    "section",
    { class: "card sandbox", "aria-labelledby": "sandbox" },
    el("h2", { id: "sandbox" }, icon("shield"), "What the work can and cannot do"),
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
      "your GPU and your network address, as any site does. Whoever runs the coordinator decides which ",
      "jobs are sent, so join only pools that you trust with your electricity.",
    ),
  );
}
