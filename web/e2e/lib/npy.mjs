// NumPy's files on disk, as the SDK reads and writes them.

import { readFileSync, writeFileSync } from "node:fs";
import { npyHeader, npyType, readNpy } from "../../dist/assets/sdk.js";

export function saveNpy(path, array, shape = [array.length]) {
  const data = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  writeFileSync(path, Buffer.concat([npyHeader(npyType(array), shape), data]));
}

export function loadNpy(path) {
  const { data: array, shape } = readNpy(Uint8Array.from(readFileSync(path)).buffer);
  return { array, shape };
}
