// The test pictures of CIFAR-10, as the package that `cargo xtask test` fetches has them.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";

import { ROOT } from "./places.mjs";

export const FOLDER = process.env.SHOAL_OUTSIDE && join(process.env.SHOAL_OUTSIDE, "cifar10/package");
/** Takes pixels as they lie in memory. */
export const MODEL = join(ROOT, "examples/cifar10/cifar10-uint8.onnx");
/** How many of the 10,000 pictures the model tells rightly: what its evaluation in one process found. */
export const RIGHT = 8777;
export const COUNT = 10_000;
/** 32 x 32 pixels of three colours. */
export const PICTURE_BYTES = 3072;

/** Pixels of all pictures, one after the other, and what they show. */
export function cifar10() {
  const labels = JSON.parse(readFileSync(join(FOLDER, "test_lables.json"), "utf8"));
  return { pixels: pixelsOf(readFileSync(join(FOLDER, "test_batch.png"))), labels };
}

/** The class with the largest number, for each item. */
export function classes(result) {
  const logits = new Float32Array(result);
  return Array.from({ length: logits.length / 10 }, (_, at) => {
    const row = logits.subarray(at * 10, at * 10 + 10);
    return row.indexOf(Math.max(...row));
  });
}

/** A PNG of three colours with 8 bits each, row by row: what the package has. */
function pixelsOf(png) {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  const parts = [];
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at);
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(png.subarray(at + 8, at + 8 + size));
    at += size + 12;
  }
  const raw = inflateSync(Buffer.concat(parts));
  const line = width * 3;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y++) unfilter(raw, y * (line + 1), pixels, y * line, line);
  return pixels;
}

/** Each byte is the difference to what the bytes beside and above it make expect. */
function unfilter(raw, from, pixels, to, line) {
  const filter = raw[from];
  for (let x = 0; x < line; x++) {
    const left = x < 3 ? 0 : pixels[to + x - 3];
    const above = to === 0 ? 0 : pixels[to + x - line];
    const corner = x < 3 || to === 0 ? 0 : pixels[to + x - line - 3];
    const expected = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter];
    pixels[to + x] = raw[from + 1 + x] + expected;
  }
}

function paeth(left, above, corner) {
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}
