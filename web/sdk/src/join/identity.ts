/** Who this device is to a coordinator: 16 random bytes, kept, so that it is the same node again tomorrow. */

const BYTES = 16;
/** Tabs of one browser that may lend at a time, each an identity of its own. */
const MOST_TABS = 64;

/** An identity that no other tab of this browser uses now; `release` gives it back. */
export interface Claimed {
  identity: Uint8Array<ArrayBuffer>;
  release: () => void;
}

export async function claimIdentity(base: string): Promise<Claimed> {
  // Without locks two tabs could take the same one and push each other out, so it is made for this tab only.
  if (!("locks" in navigator)) return { identity: fresh(), release: () => undefined };
  for (let tab = 0; tab < MOST_TABS; tab++) {
    const name = `shoal.identity ${base} ${tab}`;
    const release = await tryLock(name);
    if (release) return { identity: stored(name), release };
  }
  return { identity: fresh(), release: () => undefined };
}

function tryLock(name: string): Promise<(() => void) | undefined> {
  return new Promise((resolve) => {
    const held = navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      if (!lock) return resolve(undefined);
      return new Promise<void>((release) => resolve(() => release()));
    });
    held.catch(() => resolve(undefined));
  });
}

function stored(name: string): Uint8Array<ArrayBuffer> {
  try {
    const text = localStorage.getItem(name) ?? "";
    const bytes = Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    if (bytes.length === BYTES) return bytes;
    const made = fresh();
    localStorage.setItem(name, Array.from(made, (byte) => byte.toString(16).padStart(2, "0")).join(""));
    return made;
  } catch {
    return fresh(); // storage may be forbidden
  }
}

function fresh(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(BYTES));
}
