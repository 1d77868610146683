/** Uploads. Small ones in one request; large ones by name, so that they resume and are sent only once. */

import type { Http } from "./http.js";
import { patiently, Tries } from "./patience.js";
import type { BlobRef } from "./types.js";

export type Bytes = ArrayBuffer | ArrayBufferView<ArrayBuffer> | globalThis.Blob;

export interface UploadOptions {
  onProgress?: (sent: number, total: number) => void;
  signal?: AbortSignal | undefined;
}

/** Below this a lost connection costs less than hashing first and asking whether the bytes are known. */
const ONE_REQUEST = 4 << 20;
/** Sent per request: what is lost at most when a connection breaks. */
const PIECE = 16 << 20;
/** Read into memory at a time for hashing; a whole number of BLAKE3 chunks. */
const HASH_STEP = 1 << 20;

export async function upload(http: Http, data: Bytes, options: UploadOptions = {}): Promise<BlobRef> {
  const blob = data instanceof Blob ? data : new Blob([data]);
  const hasher = blob.size > ONE_REQUEST ? await loadHasher(http.base) : undefined;
  if (!hasher) {
    const { signal } = options;
    const send = () => http.json<BlobRef>("/api/v1/blobs", { method: "POST", body: blob, signal });
    const stored = await patiently(send, signal);
    options.onProgress?.(stored.size, stored.size);
    return stored;
  }
  return resumable(http, blob, await hashOf(blob, hasher), options);
}

async function resumable(
  http: Http,
  blob: globalThis.Blob,
  hash: string,
  { onProgress, signal }: UploadOptions,
): Promise<BlobRef> {
  const path = `/api/v1/blobs/${hash}`;
  const tries = new Tries(signal);
  let held = await patiently(() => heldBytes(http, path, blob.size, signal), signal);
  while (held < blob.size) {
    onProgress?.(held, blob.size);
    try {
      const headers = { "upload-offset": String(held), "upload-length": String(blob.size) };
      const body = blob.slice(held, held + PIECE);
      const answer = await http.call(path, { method: "PUT", headers, body, signal, accept: [409] });
      if (answer.status === 201) break;
      held = await heldBytes(http, path, blob.size, signal);
      tries.moved();
    } catch (error) {
      await tries.again(error);
      held = await heldBytes(http, path, blob.size, signal).catch(() => held);
    }
  }
  onProgress?.(blob.size, blob.size);
  return { hash, size: blob.size };
}

async function heldBytes(http: Http, path: string, size: number, signal?: AbortSignal): Promise<number> {
  const answer = await http.call(path, { method: "HEAD", signal, accept: [404] });
  return answer.status === 404 ? Number(answer.headers.get("upload-offset") ?? 0) : size;
}

interface Hasher {
  update(bytes: Uint8Array): void;
  hex(): string;
  free(): void;
}

async function hashOf(blob: globalThis.Blob, newHasher: () => Hasher): Promise<string> {
  const hasher = newHasher();
  try {
    for (let at = 0; at < blob.size; at += HASH_STEP) {
      hasher.update(new Uint8Array(await blob.slice(at, at + HASH_STEP).arrayBuffer()));
    }
    return hasher.hex();
  } finally {
    hasher.free();
  }
}

/** BLAKE3 in WebAssembly, served by the coordinator; without it uploads work but do not resume. */
async function loadHasher(base: string): Promise<(() => Hasher) | undefined> {
  try {
    const url = `${base}/assets/hash.js`;
    const module = (await import(/* @vite-ignore */ url)) as { load(): Promise<() => Hasher> };
    return await module.load();
  } catch {
    return undefined;
  }
}

/** Bytes to be sent, or a blob that is there already. */
export type Source = Bytes | { blob: string };

/** Lines as the bytes of one blob. */
export function lineBytes(lines: readonly string[] | string | { blob: string }): Source {
  if (typeof lines === "string") return new Blob([lines]);
  if ("blob" in lines) return lines;
  return new Blob([lines.map((line) => `${line}\n`).join("")]);
}
