/** BLAKE3 for engine Workers, from the brain's code, started when the first bytes must be checked. */

import { Hasher, initSync } from "../../generated/brain/brain.js";

/** Hashed at a time: the module's memory takes a copy of it. A whole number of BLAKE3 chunks. */
const STEP = 1 << 20;

export class Hashing {
  private isStarted = false;

  constructor(private readonly code: WebAssembly.Module) {}

  /** A hash of bytes that come one piece after the other. */
  begin(): Hasher {
    if (!this.isStarted) initSync({ module: this.code });
    this.isStarted = true;
    return new Hasher();
  }

  hex(bytes: Uint8Array): string {
    const hasher = this.begin();
    try {
      this.feed(hasher, bytes);
      return hasher.hex();
    } finally {
      hasher.free();
    }
  }

  feed(hasher: Hasher, bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; at += STEP) hasher.update(bytes.subarray(at, at + STEP));
  }
}

export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
