/** A canvas that is as wide as its place, sharp on every screen, and redrawn when what it shows changes. */

import { el } from "../view/dom";
import { effect, onCleanup, signal } from "../view/reactive";

interface CanvasOptions {
  class: string;
  label: () => string;
  height: (width: number) => number;
  /** In CSS pixels, on a cleared surface; whatever signals it reads cause a redraw. */
  draw: (context: CanvasRenderingContext2D, width: number, height: number) => void;
  onpoint?: (at: { x: number; y: number } | null) => void;
}

export interface Canvas {
  element: HTMLElement;
  width: () => number;
}

const dark = matchMedia("(prefers-color-scheme: dark)");

export function canvas(options: CanvasOptions): Canvas {
  const width = signal(0);
  const theme = signal(dark.matches);
  const surface = el("canvas", {
    role: "img",
    "aria-label": options.label,
    onpointermove: (event: PointerEvent) =>
      options.onpoint?.({ x: event.offsetX, y: event.offsetY }),
    onpointerleave: () => options.onpoint?.(null),
  });
  const box = el("div", { class: `canvas-box ${options.class}` }, surface);
  const watch = new ResizeObserver(() => width.set(box.clientWidth));
  watch.observe(box);
  const themed = () => theme.set(dark.matches);
  dark.addEventListener("change", themed);
  onCleanup(() => {
    watch.disconnect();
    dark.removeEventListener("change", themed);
  });

  effect(() => {
    theme();
    const [wide, scale] = [width(), devicePixelRatio || 1];
    if (wide === 0) return;
    const high = options.height(wide);
    surface.width = Math.round(wide * scale);
    surface.height = Math.round(high * scale);
    surface.style.setProperty("height", `${high}px`);
    const context = surface.getContext("2d");
    if (!context) return;
    context.scale(scale, scale);
    options.draw(context, wide, high);
  });
  return { element: box, width };
}
