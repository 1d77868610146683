/** A rendered picture, put together from its tiles. */

import type { RenderInfo } from "./types.js";

export interface Picture {
  width: number;
  height: number;
  /** Row by row, red green blue alpha: bytes, or linear light from 0 to 1. */
  pixels: Uint8ClampedArray<ArrayBuffer> | Float32Array<ArrayBuffer>;
}

/** Tiles come row by row, each stored full size, also at the edges. */
export function assemble(info: RenderInfo, tiles: ArrayBuffer): Picture {
  const { width, height } = info;
  const pixels =
    info.pixel === "rgba8"
      ? copyTiles(info, new Uint8ClampedArray(tiles), new Uint8ClampedArray(width * height * 4))
      : copyTiles(info, new Float32Array(tiles), new Float32Array(width * height * 4));
  return { width, height, pixels };
}

function copyTiles<T extends Uint8ClampedArray | Float32Array>(info: RenderInfo, from: T, to: T): T {
  const { width, height, tile } = info;
  const columns = Math.ceil(width / tile);
  for (let y = 0; y < height; y++) {
    const row = Math.floor(y / tile);
    for (let column = 0; column < columns; column++) {
      const wide = Math.min(tile, width - column * tile);
      const start = ((row * columns + column) * tile + (y % tile)) * tile * 4;
      to.set(from.subarray(start, start + wide * 4), (y * width + column * tile) * 4);
    }
  }
  return to;
}

/** For a canvas. Linear light becomes sRGB. */
export function toImageData({ width, height, pixels }: Picture): ImageData {
  if (pixels instanceof Uint8ClampedArray) return new ImageData(pixels, width, height);
  const bytes = new Uint8ClampedArray(pixels.length);
  for (let i = 0; i < pixels.length; i++) {
    const light = Math.min(1, Math.max(0, pixels[i] ?? 0));
    const value = i % 4 === 3 ? light : light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055;
    bytes[i] = value * 255;
  }
  return new ImageData(bytes, width, height);
}
