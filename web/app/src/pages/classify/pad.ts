/** A pad to draw on, with a finger, a mouse or the keyboard. */

import { el } from "../../view/dom";
import { effect, every, signal } from "../../view/reactive";

const SIZE = 256;
const PEN = 18;
/** What an arrow key moves the pen by. */
const STEP = 8;
/** While something is drawn it is asked this often. */
const ASK_MS = 120;
const COLOURS = {
  white: "#ffffff",
  black: "#1b1b1f",
  grey: "#8a8f98",
  brown: "#7a4a24",
  red: "#c8352b",
  yellow: "#e8b93a",
  green: "#3f8f3a",
  blue: "#2d6fd0",
} as const;
type Colour = keyof typeof COLOURS;
const SKY = "#a8cdf0";

const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-STEP, 0],
  ArrowRight: [STEP, 0],
  ArrowUp: [0, -STEP],
  ArrowDown: [0, STEP],
};

export function pad(ask: (from: CanvasImageSource, width: number, height: number) => boolean): HTMLElement {
  const colour = signal<Colour>("grey");
  let at: [number, number] = [SIZE / 2, SIZE / 2];
  let isDown = false;
  let isNew = false;
  const isKeyDown = signal(false);
  const canvas = el("canvas", {
    class: "pad",
    width: SIZE,
    height: SIZE,
    tabindex: 0,
    role: "img",
    "aria-label": "Drawing pad. Arrow keys move the pen, the space bar puts it down or lifts it.",
  });
  const context = canvas.getContext("2d");
  const clear = () => {
    if (!context) return;
    context.fillStyle = SKY;
    context.fillRect(0, 0, SIZE, SIZE);
    isNew = true;
  };
  const draw = (to: [number, number]) => {
    if (context) {
      context.strokeStyle = COLOURS[colour()];
      context.lineWidth = PEN;
      context.lineCap = "round";
      context.beginPath();
      context.moveTo(...at);
      context.lineTo(...to);
      context.stroke();
    }
    at = to;
    isNew = true;
  };
  const place = ({ clientX, clientY }: PointerEvent): [number, number] => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [((clientX - left) * SIZE) / width, ((clientY - top) * SIZE) / height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    isDown = true;
    at = place(event);
    draw(at);
  });
  canvas.addEventListener("pointermove", (event) => isDown && draw(place(event)));
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (isDown = false));
  canvas.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (event.key === " ") isKeyDown.update((down) => !down);
    if (step) {
      const to: [number, number] = [clamp(at[0] + step[0]), clamp(at[1] + step[1])];
      if (isKeyDown()) draw(to);
      else at = to;
    }
    if (step || event.key === " ") event.preventDefault();
  });
  clear();
  isNew = false;
  // Drawn since the last time, and not dropped because all slices are busy.
  every(ASK_MS, () => isNew && ask(canvas, SIZE, SIZE) && (isNew = false));
  effect(() => void (canvas.dataset.pen = isKeyDown() ? "down" : "up"));
  return el(
    "div",
    { class: "drawing" },
    canvas,
    el(
      "fieldset",
      { class: "colours" },
      el("legend", { class: "unseen" }, "Colour of the pen"),
      (Object.keys(COLOURS) as Colour[]).map((name) =>
        el(
          "label",
          { title: name, vars: { "--own": COLOURS[name] } },
          el("input", { type: "radio", name: "colour", "aria-label": name, checked: () => colour() === name, onchange: () => colour.set(name) }),
        ),
      ),
    ),
    el("button", { type: "button", onclick: clear }, "Clear"),
  );
}

function clamp(value: number): number {
  return Math.min(SIZE, Math.max(0, value));
}
