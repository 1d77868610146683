/** The hash that names blobs, from the brain's module. */

import { readFile } from "node:fs/promises";
import { Hasher, initSync } from "../../sdk/generated/brain/brain.js";

export async function blake3(bytes) {
  initSync({ module: await readFile(new URL("../../sdk/generated/brain/brain_bg.wasm", import.meta.url)) });
  const hasher = new Hasher();
  hasher.update(bytes);
  return hasher.hex();
}
