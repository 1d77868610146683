/** Which model, where it runs, and what counts as found. */

import type { ModelEntry, Where } from "@shoal/sdk";

import { bytes, percent } from "../../core/format";
import { icon } from "../../parts/icons";
import { el, show } from "../../view/dom";
import { memo } from "../../view/reactive";
import type { Desk } from "./desk";
import { filePicker } from "./stage";

const PLACES: readonly { where: Where; label: string; about: string }[] = [
  { where: "auto", label: "Auto", about: "Measures both and keeps to the faster. If one fails, the other goes on." },
  { where: "local", label: "Local", about: "Runs in this page. Nothing of the picture leaves this device." },
  { where: "remote", label: "Remote", about: "Runs on the pool. The picture is sent small, one byte for each colour." },
  { where: "split", label: "Split", about: "Runs on several devices, each with a slice of the model. The picture goes to the first one, boxes come from the last." },
];
const NOT_SPLIT = "Add the model with shoal model add --split 2 to run it on several devices";

export function controls(desk: Desk): HTMLElement {
  return el(
    "section",
    { class: "card controls", "aria-labelledby": "model-head" },
    el("h2", { id: "model-head" }, "Model"),
    modelPicker(desk),
    loading(desk),
    el("p", { class: "problem", role: "alert" }, desk.modelProblem),
    places(desk),
    el(
      "label",
      { class: "field" },
      el("span", null, "Least score: ", el("output", null, () => `${Math.round(desk.score() * 100)} %`)),
      el("input", {
        type: "range",
        min: 5,
        max: 95,
        step: 5,
        value: () => Math.round(desk.score() * 100),
        oninput: (event: Event) => desk.setScore(Number((event.target as HTMLInputElement).value) / 100),
      }),
    ),
  );
}

function modelPicker(desk: Desk): HTMLElement {
  const picker = filePicker(".onnx", (file) => void desk.add(file));
  const isEmpty = memo(() => desk.models()?.length === 0);
  const choose = (event: Event) => void desk.choose((event.target as HTMLSelectElement).value);
  const options = () => {
    const now = desk.chosen()?.name;
    const option = ({ name, size }: ModelEntry) => el("option", { value: name, selected: name === now }, `${name} (${bytes(size)})`);
    return (desk.models() ?? []).map(option);
  };
  return el(
    "div",
    { class: "model" },
    show(
      () => !isEmpty(),
      () =>
        el(
          "label",
          { class: "picker" },
          el("span", { class: "unseen" }, "Model"),
          el("select", { onchange: choose, disabled: () => !desk.models() }, options),
        ),
      () =>
        el(
          "div",
          { class: "quiet none" },
          el("p", null, "This pool has no model yet. Add a detector such as YOLO from a shell:"),
          el("pre", null, "shoal model add yolov8n.onnx"),
          el("p", null, "or choose its file here."),
        ),
    ),
    picker,
    el(
      "button",
      { type: "button", class: () => (isEmpty() ? "primary" : "plain"), disabled: () => desk.adding(), onclick: () => picker.click() },
      icon("plus"),
      () => (isEmpty() ? "Choose an .onnx file" : "Add a model"),
    ),
    el("p", { class: "small", hidden: isEmpty }, () => readyWords(desk)),
  );
}

function readyWords(desk: Desk): string {
  const entry = desk.models()?.find(({ name }) => name === desk.chosen()?.name);
  if (!entry) return "";
  if (entry.readyOn.length > 0) return `Ready on ${entry.readyOn.join(", ")}.`;
  return entry.trouble ? `No node can run it: ${entry.trouble}` : "No node has it ready yet. It can still run in this page.";
}

function loading(desk: Desk): HTMLElement {
  const part = () => {
    const now = desk.progress();
    return now && now.total > 0 ? now.loaded / now.total : 0;
  };
  const words = () => {
    const now = desk.progress();
    if (!now) return "";
    return `${desk.adding() ? "Sending" : "Loading"} the model: ${percent(now.loaded, now.total)} of ${bytes(now.total)}`;
  };
  return el(
    "div",
    { class: "loading", hidden: () => !desk.progress() },
    el("span", { class: "small" }, words),
    el("div", { class: "meter" }, el("i", { vars: { "--part": () => `${part() * 100}%` } })),
  );
}

function places(desk: Desk): HTMLElement {
  const isMissing = (where: Where) => where === "split" && !desk.isSplit();
  const about = () => PLACES.find(({ where }) => where === desk.where())?.about ?? "";
  return el(
    "fieldset",
    { class: "where" },
    el("legend", null, "Where it runs"),
    el(
      "div",
      { class: "segments four" },
      PLACES.map(({ where, label }) =>
        el(
          "label",
          { title: () => (isMissing(where) ? NOT_SPLIT : null) },
          el("input", {
            type: "radio",
            name: "where",
            value: where,
            disabled: () => isMissing(where),
            checked: () => desk.where() === where,
            onchange: () => desk.setWhere(where),
          }),
          el("span", null, label),
        ),
      ),
    ),
    el("p", { class: "small" }, about),
  );
}
