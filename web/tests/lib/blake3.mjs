/** The hash that names blobs, from the brain's module. */

import { readFileSync } from "node:fs";
import { Hasher, initSync } from "../../sdk/generated/brain/brain.js";

const CODE = new URL("../../sdk/generated/brain/brain_bg.wasm", import.meta.url);

initSync({ module: readFileSync(CODE) });

export function blake3(bytes) {
  if (!(bytes instanceof Uint8Array)) throw new TypeError("only bytes have a hash");
  const hasher = new Hasher();
  hasher.update(bytes);
  const hex = hasher.hex();
  hasher.free();
  return hex;
}
