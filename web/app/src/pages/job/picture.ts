/** A render job's picture, growing tile by tile. */

import type { Store } from "../../core/store";
import type { Job } from "@shoal/sdk";
import { tilePixels } from "../../core/tiles";
import { el } from "../../view/dom";
import { effect, memo, onCleanup } from "../../view/reactive";

/** Tiles fetched at a time. */
const ABREAST = 6;

export function pictureCard(
  store: Store,
  job: () => Job,
  onTiles: (listener: (tiles: readonly number[]) => void) => void,
): HTMLElement {
  const render = job().render;
  if (!render) return el("section", { class: "card" });
  const surface = el("canvas", {
    class: "picture",
    width: render.width,
    height: render.height,
    role: "img",
    "aria-label": () => `The picture, ${Math.floor((100 * job().itemsDone) / Math.max(1, job().items))} percent done`,
  });
  paint(store, job, onTiles, surface);
  return el(
    "section",
    { class: "card", "aria-labelledby": "picture" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "picture" }, "Picture"),
      el("span", { class: "quiet" }, `${render.width} × ${render.height}, ${render.samples} samples, tiles of ${render.tile}`),
    ),
    surface,
  );
}

/** Draws what is there, then each tile as it comes, then the finished picture. */
export function paint(
  store: Store,
  job: () => Job,
  onTiles: (listener: (tiles: readonly number[]) => void) => void,
  surface: HTMLCanvasElement,
): void {
  const context = surface.getContext("2d");
  const { id, render } = job();
  if (!context || !render) return;
  const columns = Math.ceil(render.width / render.tile);
  const waiting: number[] = [];
  let [busy, open] = [0, true];
  onCleanup(() => {
    open = false;
  });

  const whole = async () => {
    try {
      const bitmap = await createImageBitmap(await store.shoal.picture(id));
      if (open) context.drawImage(bitmap, 0, 0);
    } catch {
      // Nothing is there yet; tiles and the end will bring it.
    }
  };
  const one = async (tile: number) => {
    try {
      const bytes = await store.shoal.tile(id, tile);
      const pixels = tilePixels(bytes, render);
      if (open) context.putImageData(pixels, (tile % columns) * render.tile, Math.floor(tile / columns) * render.tile);
    } catch {
      // The finished picture holds it.
    }
    busy -= 1;
    next();
  };
  const next = () => {
    while (open && busy < ABREAST) {
      const tile = waiting.shift();
      if (tile === undefined) return;
      busy += 1;
      void one(tile);
    }
  };
  onTiles((tiles) => {
    waiting.push(...tiles);
    next();
  });
  const state = memo(() => job().state);
  // At the start it shows what is there, at the end what is right.
  effect(() => {
    if (state() !== "running") waiting.length = 0;
    void whole();
  });
}
