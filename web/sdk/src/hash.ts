/** `/assets/hash.js`: BLAKE3 from the brain's module, loaded by the SDK for large uploads only. */

import init, { Hasher } from "../generated/brain/brain.js";

export async function load(): Promise<() => Hasher> {
  await init({ module_or_path: new URL("./brain_bg.wasm", import.meta.url) });
  return () => new Hasher();
}
