/** A render job's picture, growing tile by tile. */

import type { Job, RenderInfo, UnitList } from "@shoal/sdk";

import { colourOf } from "../../core/colours";
import type { Store } from "../../core/store";
import { tilePixels } from "../../core/tiles";
import type { Child } from "../../view/dom";
import { each, el, svg } from "../../view/dom";
import { effect, memo, onCleanup } from "../../view/reactive";

type OnTiles = (listener: (tiles: readonly number[]) => void) => void;

/** Tiles fetched at a time. */
const ABREAST = 6;
/** From here on the picture as one file is less than its tiles. */
const MANY = 64;

export function pictureCard(
  store: Store,
  job: () => Job,
  units: () => UnitList,
  onTiles: OnTiles,
): HTMLElement {
  const render = job().render;
  if (!render) return el("section", { class: "card" });
  return el(
    "section",
    { class: "card", "aria-labelledby": "picture" },
    el(
      "div",
      { class: "head" },
      el("h2", { id: "picture" }, "Picture"),
      el(
        "span",
        { class: "quiet" },
        `${render.width} × ${render.height}, ${render.samples} samples, tiles of ${render.tile}`,
      ),
    ),
    el("div", { class: "easel" }, picture(store, job, onTiles), lentTiles(render, units)),
  );
}

/** A canvas that shows the picture as far as it is. */
export function picture(store: Store, job: () => Job, onTiles: OnTiles): Child {
  const render = job().render;
  if (!render) return null;
  const done = () => Math.floor((100 * job().itemsDone) / Math.max(1, job().items));
  const surface = el("canvas", {
    class: "picture",
    width: render.width,
    height: render.height,
    role: "img",
    "aria-label": () => `The picture, ${done()} percent done`,
  });
  paint(store, job, onTiles, surface);
  return surface;
}

/** Frames around the tiles that are being worked on, in the colour of who has them. */
function lentTiles(render: RenderInfo, units: () => UnitList): SVGElement {
  const { width, height, tile } = render;
  const columns = Math.ceil(width / tile);
  const lent = () =>
    units()
      .units.filter((unit) => unit.state === "leased")
      .flatMap((unit) =>
        Array.from({ length: unit.len }, (_, i) => ({
          tile: unit.start + i,
          node: unit.node ?? 0,
        })),
      );
  return svg(
    "svg",
    { class: "lent", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    each(
      lent,
      (one) => `${one.tile} ${one.node}`,
      (one) =>
        svg("rect", {
          class: `c${colourOf(one().node)}`,
          x: (one().tile % columns) * tile + 2,
          y: Math.floor(one().tile / columns) * tile + 2,
          width: tile - 4,
          height: tile - 4,
          rx: 3,
        }),
    ),
  );
}

/** Draws what is there, then each tile as it comes, then the finished picture. */
function paint(store: Store, job: () => Job, onTiles: OnTiles, surface: HTMLCanvasElement): void {
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
      if (open)
        context.putImageData(
          pixels,
          (tile % columns) * render.tile,
          Math.floor(tile / columns) * render.tile,
        );
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
    if (tiles.length > MANY) return void whole();
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
