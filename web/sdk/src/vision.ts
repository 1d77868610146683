/** `/assets/vision.js`: pictures made small and classes named, loaded by the SDK when a model is to detect something. */

import init, { Classes, Pixels } from "../generated/vision/vision.js";

export async function load(): Promise<{ Classes: typeof Classes; Pixels: typeof Pixels }> {
  await init({ module_or_path: new URL("./vision_bg.wasm", import.meta.url) });
  return { Classes, Pixels };
}
