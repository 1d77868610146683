/** The picture with its boxes, and the ways to choose one. */

import type { Detections, FoundBox } from "@shoal/sdk";

import type { Rect } from "../../core/labels";
import { labelAt } from "../../core/labels";
import { icon } from "../../parts/icons";
import { el, show } from "../../view/dom";
import { onCleanup, signal } from "../../view/reactive";
import type { Desk } from "./desk";

/** Lines and letters, as parts of the picture's shorter side as it is shown. */
const LINE = 1 / 200;
const LETTERS = 1 / 32;
const SMALLEST_LETTERS = 12;

export function stage(desk: Desk): HTMLElement {
  const over = signal(false);
  const boxes = el("canvas", { class: "boxes", "aria-hidden": "true" });
  let last: Detections | null = null;
  const redraw = () => drawBoxes(boxes, last);
  desk.setDraw((found) => {
    last = found;
    redraw();
  });
  const watcher = new ResizeObserver(redraw);
  watcher.observe(boxes);
  onCleanup(() => watcher.disconnect());
  onPaste((file) => void desk.openFile(file));
  const drop = (event: DragEvent) => {
    event.preventDefault();
    over.set(false);
    const [file] = event.dataTransfer?.files ?? [];
    if (file) void desk.openFile(file);
  };
  const picker = filePicker("image/*,video/*", (file) => void desk.openFile(file));
  return el(
    "section",
    {
      class: () => `card stage${over() ? " over" : ""}`,
      "aria-labelledby": "stage",
      ondragover: (event: DragEvent) => {
        event.preventDefault();
        over.set(true);
      },
      ondragleave: () => over.set(false),
      ondrop: drop,
    },
    el("div", { class: "head" }, el("h1", { id: "stage" }, "Detect"), el("span", { class: "small" }, () => desk.media()?.name ?? "")),
    show(
      () => desk.media(),
      (media) => {
        last = null;
        return el("div", { class: "view" }, media.element, boxes);
      },
      () => blank(),
    ),
    el("p", { class: "problem", role: "alert" }, desk.problem),
    el(
      "div",
      { class: "actions" },
      picker,
      el("button", { type: "button", class: () => (desk.media() ? "" : "primary"), disabled: () => desk.busy(), onclick: () => picker.click() }, icon("picture"), "Picture or video"),
      el("button", { type: "button", disabled: () => desk.busy(), onclick: () => void desk.openCamera() }, icon("camera"), "Camera"),
      el("button", { type: "button", class: "danger", hidden: () => !desk.media(), onclick: desk.close }, icon("stop"), () => (desk.isLive() ? "Stop" : "Clear")),
    ),
    summary(desk),
  );
}

export function filePicker(accept: string, take: (file: File) => void): HTMLInputElement {
  return el("input", {
    type: "file",
    accept,
    hidden: true,
    onchange: (event: Event) => {
      const input = event.target as HTMLInputElement;
      const [file] = input.files ?? [];
      // The same file may be chosen again.
      input.value = "";
      if (file) take(file);
    },
  });
}

function blank(): HTMLElement {
  return el(
    "div",
    { class: "blank quiet" },
    el("p", null, "Choose a picture or video, drop one here, paste one, or use the camera."),
  );
}

/** What was found, in words. Of a video, a screen reader would never stop reading it. */
function summary(desk: Desk): HTMLElement {
  const words = () => {
    const found = desk.found();
    if (!found) return "";
    return found.boxes.length === 0 ? "Nothing found." : `Found ${counted(found.boxes)}.`;
  };
  return el("p", { class: "found", role: "status", "aria-live": () => (desk.isLive() ? "off" : "polite") }, words);
}

/** "1 bus, 3 person" */
function counted(boxes: readonly FoundBox[]): string {
  const counts = new Map<string, number>();
  for (const { name } of boxes) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(", ");
}

function onPaste(take: (file: File) => void): void {
  const paste = (event: ClipboardEvent) => {
    const file = [...(event.clipboardData?.files ?? [])].find(({ type }) => /^(image|video)\//.test(type));
    if (file) take(file);
  };
  document.addEventListener("paste", paste);
  onCleanup(() => document.removeEventListener("paste", paste));
}

/** Boxes and names over the picture, as sharp as the screen is. */
function drawBoxes(canvas: HTMLCanvasElement, found: Detections | null): void {
  const { clientWidth, clientHeight } = canvas;
  const dense = devicePixelRatio || 1;
  const [across, down] = [Math.round(clientWidth * dense), Math.round(clientHeight * dense)];
  if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down];
  const context = canvas.getContext("2d");
  if (!context) return;
  context.clearRect(0, 0, across, down);
  if (!found || across === 0) return;
  const scale = across / found.width;
  const side = Math.min(across, down);
  const letters = Math.max(SMALLEST_LETTERS * dense, side * LETTERS);
  context.lineWidth = Math.max(2 * dense, side * LINE);
  context.font = `600 ${letters}px system-ui, sans-serif`;
  context.textBaseline = "top";
  // The best on top, and its name first where it belongs.
  for (const one of [...found.boxes].reverse()) drawBox(context, one, scale);
  const taken: Rect[] = [];
  for (const one of found.boxes) taken.push(drawName(context, one, scale, letters, taken));
}

function placed({ box }: FoundBox, scale: number): Rect {
  const [left, top, right, bottom] = box.map((side) => side * scale) as [number, number, number, number];
  return { left, top, right, bottom };
}

function drawBox(context: CanvasRenderingContext2D, found: FoundBox, scale: number): void {
  const { left, top, right, bottom } = placed(found, scale);
  context.strokeStyle = paintOf(found);
  context.strokeRect(left, top, right - left, bottom - top);
}

/** Where it stands. */
function drawName(context: CanvasRenderingContext2D, found: FoundBox, scale: number, letters: number, taken: readonly Rect[]): Rect {
  const { name, score, colour } = found;
  const [red, green, blue] = colour;
  const label = `${name} ${Math.round(score * 100)} %`;
  const size: [number, number] = [context.measureText(label).width + letters * 0.6, letters * 1.4];
  const { left, right, top, bottom } = placed(found, scale);
  const line = context.lineWidth / 2;
  const box = { left: left - line, top, right: right + line, bottom };
  const place = labelAt(box, size, [context.canvas.width, context.canvas.height], taken);
  context.fillStyle = paintOf(found);
  context.fillRect(place.left, place.top, ...size);
  const isBright = red * 0.299 + green * 0.587 + blue * 0.114 > 140;
  context.fillStyle = isBright ? "#000" : "#fff";
  context.fillText(label, place.left + letters * 0.3, place.top + letters * 0.22);
  return place;
}

function paintOf({ colour: [red, green, blue] }: FoundBox): string {
  return `rgb(${red} ${green} ${blue})`;
}
