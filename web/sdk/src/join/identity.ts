/** Who this device is to a coordinator: a key pair, kept, so that it is the same node again tomorrow. */

import { freshPair, keptKeys, type KeyPair, keyPair } from "../keyring.js";

/** Tabs of one browser that may lend at a time, each an identity of its own. */
const MOST_TABS = 64;

/** An identity that no other tab of this browser uses now; `release` gives it back. */
export interface Claimed {
  identity: KeyPair;
  release: () => void;
}

export async function claimIdentity(base: string): Promise<Claimed> {
  // Without locks two tabs could take the same one and push each other out, so it is made for this tab only.
  if (!("locks" in navigator)) return { identity: await freshPair(), release: () => undefined };
  for (let tab = 0; tab < MOST_TABS; tab++) {
    const name = `${startOfName(base)}${tab}`;
    const release = await tryLock(`shoal ${name}`);
    if (!release) continue;
    try {
      return { identity: await keyPair(name), release };
    } catch (error) {
      release();
      throw error;
    }
  }
  return { identity: await freshPair(), release: () => undefined };
}

/** Who tabs of this browser are, or were, to a coordinator: public keys. */
export function ownIdentities(base: string): Promise<string[]> {
  return keptKeys(startOfName(base));
}

function startOfName(base: string): string {
  return `node ${base} `;
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
