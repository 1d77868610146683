/** BLAKE3 of versions, by the code that lies beside this one where the pool serves both. Without it versions have no
 * hash of their own; each message still has the link's. */

/** Hashed at a time: the module's memory takes a copy of it. */
const STEP = 1 << 20;

interface Hasher {
  update(bytes: Uint8Array): void;
  hex(): string;
  free(): void;
}

export interface Hashing {
  update(bytes: Uint8Array): void;
  /** 64 hex digits, or nothing where it could not be computed. Call it once. */
  end(): string;
}

const NONE: Hashing = { update: () => undefined, end: () => "" };
let loading: Promise<(() => Hasher) | undefined> | undefined;

export async function beginHash(): Promise<Hashing> {
  loading ??= load();
  const hasher = (await loading)?.();
  if (!hasher) return NONE;
  return {
    update(bytes) {
      for (let at = 0; at < bytes.byteLength; at += STEP) hasher.update(bytes.subarray(at, at + STEP));
    },
    end() {
      const hex = hasher.hex();
      hasher.free();
      return hex;
    },
  };
}

async function load(): Promise<(() => Hasher) | undefined> {
  try {
    const code = (await import(new URL("./hash.js", import.meta.url).href)) as { load: () => Promise<() => Hasher> };
    return await code.load();
  } catch {
    return undefined;
  }
}
