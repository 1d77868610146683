/** Raw tiles as a browser's pixels. */

import type { RenderInfo } from "@shoal/sdk";
import { toImageData } from "@shoal/sdk";

export function tilePixels(bytes: ArrayBuffer, { tile, pixel }: RenderInfo): ImageData {
  const pixels = pixel === "rgba8" ? new Uint8ClampedArray(bytes) : new Float32Array(bytes);
  return toImageData({ width: tile, height: tile, pixels });
}
