/** What lent work may do here, and what it cannot. */

import { icon } from "../parts/icons";
import { el } from "../view/dom";

const CAN = [
  "use the share of CPU and GPU you set above",
  "read the inputs that belong to the job, and send its results back",
  "know your browser's name and your GPU's name, and your network address, as any site does",
];
const CANNOT = [
  "see your files, your other tabs, your camera, microphone or place",
  "reach the network, or any device in your home: kernels and programs have no network at all",
  "go on after you press Stop or close this tab",
  "take more memory or time than the job's limits: then it is ended",
];

export function sandbox(): HTMLElement {
  return el(
    "section",
    { class: "card sandbox", "aria-labelledby": "sandbox" },
    el("h2", { id: "sandbox" }, icon("shield"), "What the work can do, and cannot"),
    el("div", null, el("h3", null, "It can"), el("ul", null, CAN.map((line) => el("li", null, line)))),
    el("div", null, el("h3", null, "It cannot"), el("ul", { class: "not" }, CANNOT.map((line) => el("li", null, line)))),
    el(
      "p",
      { class: "quiet" },
      "Work is either a GPU kernel in WGSL, checked before it is sent out, or a WebAssembly program. Both run inside your browser's own sandbox. Who runs the coordinator decides which jobs are sent, so join only those you trust with your electricity.",
    ),
  );
}
