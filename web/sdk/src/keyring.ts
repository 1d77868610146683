/** Ed25519 key pairs of this browser. The private halves never leave it: not even the page can read them. */

const DATABASE = "shoal";
const STORE = "keys";

export interface KeyPair {
  publicKey: Uint8Array<ArrayBuffer>;
  privateKey: CryptoKey;
}

/** The pair of this name, made when first asked for. Where nothing can be stored it lasts as long as the page. */
export async function keyPair(name: string): Promise<KeyPair> {
  const made = await generate();
  return raw(await kept(name, made).catch(() => made));
}

/** A pair that is not kept. */
export async function freshPair(): Promise<KeyPair> {
  return raw(await generate());
}

/** The public halves of all pairs kept under names that start so, 64 hex digits each; none where nothing is kept. */
export async function keptKeys(start: string): Promise<string[]> {
  const pairs = await allKept(start).catch(() => []);
  return Promise.all(pairs.map(async (pair) => hex((await raw(pair)).publicKey)));
}

async function allKept(start: string): Promise<CryptoKeyPair[]> {
  const database = await open();
  try {
    return await new Promise<CryptoKeyPair[]>((resolve, reject) => {
      const names = IDBKeyRange.bound(start, `${start}\uffff`);
      const found = database.transaction(STORE).objectStore(STORE).getAll(names);
      found.onsuccess = () => resolve(found.result as CryptoKeyPair[]);
      found.onerror = () => reject(found.error ?? new Error("the key store cannot be read"));
    });
  } finally {
    database.close();
  }
}

async function generate(): Promise<CryptoKeyPair> {
  if (!globalThis.crypto?.subtle) {
    throw new Error("keys need a secure page: https, or http on this machine");
  }
  try {
    return (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
  } catch (error) {
    const wanted = "Chrome 137, Firefox 129, Safari 17 and later can";
    throw new Error(`this browser cannot make Ed25519 keys (${wanted}): ${String(error)}`);
  }
}

async function raw({ publicKey, privateKey }: CryptoKeyPair): Promise<KeyPair> {
  return { publicKey: new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)), privateKey };
}

/** What is stored under the name; `made` if nothing was. One transaction, so that two tabs end up with the same pair. */
async function kept(name: string, made: CryptoKeyPair): Promise<CryptoKeyPair> {
  const database = await open();
  try {
    return await new Promise<CryptoKeyPair>((resolve, reject) => {
      const transaction = database.transaction(STORE, "readwrite");
      const store = transaction.objectStore(STORE);
      const found = store.get(name);
      let pair = made;
      found.onsuccess = () => {
        if (found.result === undefined) store.put(made, name);
        else pair = found.result as CryptoKeyPair;
      };
      transaction.oncomplete = () => resolve(pair);
      transaction.onabort = () => reject(transaction.error ?? new Error("the key store cannot be written"));
    });
  } finally {
    database.close();
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error ?? new Error("the key store cannot be opened"));
  });
}

/** As keys and signatures are written everywhere. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
