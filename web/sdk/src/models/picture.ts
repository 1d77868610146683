/** Pictures of any kind as pixels, as small as the model sees them. */

import { ShoalError } from "../http.js";
import type { load } from "../vision.js";
import type { PictureSource } from "./types.js";

export type Vision = Awaited<ReturnType<typeof load>>;

export interface SmallPicture {
  pixels: Uint8Array<ArrayBuffer>;
  width: number;
  height: number;
  /** Of the picture itself. */
  full: { width: number; height: number };
}

const loaded = new Map<string, Promise<Vision>>();

/** The module, once for a page. */
export function visionOf(assets: string): Promise<Vision> {
  const known = loaded.get(assets);
  if (known) return known;
  const url = `${assets}/vision.js`;
  const loading = import(/* @vite-ignore */ url).then((module: { load: typeof load }) => module.load());
  loaded.set(assets, loading);
  // Perhaps the network was away: it is tried again.
  loading.catch(() => loaded.delete(assets));
  return loading;
}

/** `sides`: what the model takes. */
export async function small(source: PictureSource, sides: [number, number], { Pixels }: Vision): Promise<SmallPicture> {
  const { data, width, height } = await pixelsOf(source);
  const rgba = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const made = Pixels.shrunk(rgba, width, height, ...sides);
  try {
    const pixels = made.take() as Uint8Array<ArrayBuffer>;
    return { pixels, width: made.width, height: made.height, full: { width, height } };
  } finally {
    made.free();
  }
}

let canvas: OffscreenCanvas | undefined;

async function pixelsOf(source: PictureSource): Promise<ImageData> {
  if (source instanceof ImageData) return source;
  const drawn = source instanceof Blob ? await bitmapOf(source) : source;
  const [width, height] = sizeOf(drawn);
  if (!width || !height) throw new ShoalError(0, "bad_picture", "the picture has no pixels yet");
  canvas ??= new OffscreenCanvas(width, height);
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (!context) throw new ShoalError(0, "bad_picture", "this browser gives no canvas of that size");
  context.clearRect(0, 0, width, height);
  context.drawImage(drawn, 0, 0);
  if (source instanceof Blob) (drawn as ImageBitmap).close();
  return context.getImageData(0, 0, width, height);
}

async function bitmapOf(file: Blob): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(file);
  } catch {
    const name = file instanceof File ? file.name : "the file";
    throw new ShoalError(0, "bad_picture", `${name} is no picture that this browser can read`);
  }
}

function sizeOf(drawn: Exclude<PictureSource, Blob | ImageData>): [number, number] {
  if (drawn instanceof HTMLVideoElement) return [drawn.videoWidth, drawn.videoHeight];
  if (drawn instanceof HTMLImageElement) return [drawn.naturalWidth, drawn.naturalHeight];
  return [drawn.width, drawn.height];
}
