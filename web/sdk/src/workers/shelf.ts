/** Blobs from the files this browser keeps, or into them: one tab fetches, the others wait and read. Whatever is wrong
 * with the files (no room, private mode, a browser without them) means fetching as if there were no shelf. */

import { fileAt, lockName, poolFolder, poolName } from "../shelf.js";
import { mustBeItself, type StoredBlob } from "./failure.js";
import type { Hashing } from "./hashing.js";
import { claimRoom, giveBack, nameOf, noteUse } from "./room.js";
import { PIECE, type Source, type Write } from "./source.js";

/** Read at a time: each read asks another process. A whole number of pieces. */
const READ = 4 * PIECE;
/** Another tab that fetches is waited for while its file grows at all in this time. */
const STALLED_MS = 10_000;
/** Dates need not be more exact to tell which blob goes first. */
const NOTE_EVERY_MS = 60_000;
/** How long nothing is put here after the disk was full: each try costs a fetch that fails in the middle. */
const FULL_MS = 600_000;
/** A Worker that was ended closes its file a moment after its lock is free. */
const CLOSING_MS = [20, 100, 500];
/** Files known to be right; of more the one known longest is hashed anew when parts of it are wanted. */
const MOST_KNOWN = 64;

export type Moving = FileSystemFileHandle & { move(name: string): Promise<void> };

export class Shelf {
  private readonly pool: string;
  /** Files whose bytes this Worker found to have their hash. */
  private readonly known = new Map<string, Promise<File | undefined>>();
  private readonly noted = new Map<string, number>();
  private fullUntil = 0;

  private constructor(
    base: string,
    private readonly source: Source,
    private readonly hashing: Hashing,
  ) {
    this.pool = poolName(base);
  }

  /** None in browsers, or on pages, that have no such files or cannot agree on who fetches. */
  static open(base: string, source: Source, hashing: Hashing): Shelf | undefined {
    return Shelf.isPossible() ? new Shelf(base, source, hashing) : undefined;
  }

  static isPossible(): boolean {
    if (typeof FileSystemFileHandle === "undefined" || !("locks" in navigator) || !("storage" in navigator)) return false;
    const can = FileSystemFileHandle.prototype;
    return "createSyncAccessHandle" in can && "move" in can && "getDirectory" in navigator.storage;
  }

  /** Whether a whole file has the blob's name. */
  has(blob: StoredBlob): Promise<boolean> {
    return helps(undefined, async () => Boolean(await fileAt(await poolFolder(this.pool), nameOf(blob))));
  }

  /** Hands on all of a blob, fetched if it is not here. False if the shelf is of no help: what was handed on until then
   * must be forgotten. */
  all(blob: StoredBlob, write: Write, signal?: AbortSignal): Promise<boolean> {
    return helps(signal, async () => {
      const folder = await poolFolder(this.pool);
      const file = await fileAt(folder, nameOf(blob));
      if (file && (await this.isRead(blob, file, write, signal))) return true;
      if (performance.now() < this.fullUntil) return false;
      const fetched = await this.alone(folder, blob, signal, async () => {
        const now = await fileAt(folder, nameOf(blob));
        if (now && now.lastModified !== file?.lastModified) return now;
        if (now) await folder.removeEntry(nameOf(blob));
        return this.fetch(folder, blob, write, signal);
      });
      if (!(fetched instanceof File)) return fetched;
      return this.isRead(blob, fetched, write, signal);
    });
  }

  /** Hands on some bytes of a blob that is here whole; false if it is not. */
  part(blob: StoredBlob, from: number, to: number, write: Write, signal?: AbortSignal): Promise<boolean> {
    return helps(signal, async () => {
      const file = await this.right(blob);
      if (!file) return false;
      try {
        await read(file, from, to, write, signal);
        return true;
      } catch (error) {
        // Removed or changed since.
        this.known.delete(blob.hash);
        throw error;
      }
    });
  }

  /** The file of a blob, hashed once by this Worker: of some bytes alone nobody can tell whether they are right. */
  private async right(blob: StoredBlob): Promise<File | undefined> {
    const known = this.known.get(blob.hash);
    if (known) return known;
    const folder = await poolFolder(this.pool);
    const file = await fileAt(folder, nameOf(blob));
    if (!file) return undefined;
    const checked = this.isRead(blob, file, () => undefined).then((isRight) => (isRight ? file : undefined));
    this.remember(blob, checked);
    return checked;
  }

  /** Hands on all bytes of a file; whether they were the blob's. */
  private async isRead(blob: StoredBlob, file: File, write: Write, signal?: AbortSignal): Promise<boolean> {
    const hasher = this.hashing.begin();
    try {
      const each: Write = (at, bytes) => {
        this.hashing.feed(hasher, bytes);
        write(at, bytes);
      };
      await read(file, 0, file.size, each, signal);
      if (hasher.hex() !== blob.hash) return false;
    } finally {
      hasher.free();
    }
    this.remember(blob, Promise.resolve(file));
    this.note(blob);
    return true;
  }

  /** From the coordinator into a file, from where an earlier fetch stopped. Who calls has the blob's lock. */
  private async fetch(folder: FileSystemDirectoryHandle, blob: StoredBlob, write: Write, signal?: AbortSignal): Promise<boolean> {
    for (;;) {
      const part = await claimRoom(this.pool, blob);
      if (!part) return false;
      let came: { hash: string; held: number };
      try {
        came = await this.fill(part, blob, write, signal);
      } catch (error) {
        if (isOfFiles(error, signal)) await folder.removeEntry(part.name).catch(() => undefined);
        if (error instanceof DOMException && error.name === "QuotaExceededError") {
          this.fullUntil = performance.now() + FULL_MS;
          await giveBack(blob.size);
        }
        throw error;
      }
      if (came.hash === blob.hash) {
        await (part as Moving).move(nameOf(blob));
        this.remember(blob, part.getFile());
        this.note(blob);
        return true;
      }
      await folder.removeEntry(part.name);
      // If nothing was held, these are the coordinator's bytes, and it will not have others.
      if (came.held === 0) mustBeItself(blob, came.hash);
    }
  }

  private async fill(
    part: FileSystemFileHandle,
    blob: StoredBlob,
    write: Write,
    signal?: AbortSignal,
  ): Promise<{ hash: string; held: number }> {
    const left = await part.getFile();
    // The last piece may have been written in part when its tab ended.
    const held = left.size === blob.size ? blob.size : Math.floor(Math.min(left.size, blob.size) / PIECE) * PIECE;
    const hasher = this.hashing.begin();
    try {
      const heard: Write = (at, bytes) => {
        this.hashing.feed(hasher, bytes);
        write(at, bytes);
      };
      await read(left, 0, held, heard, signal);
      const file = await openAlone(part);
      try {
        file.truncate(held);
        const kept: Write = (at, bytes) => {
          if (file.write(bytes, { at }) < bytes.byteLength) throw new DOMException("no room", "QuotaExceededError");
          heard(at, bytes);
        };
        await this.source.pour(blob, held, blob.size, kept, signal);
        file.flush();
      } finally {
        file.close();
      }
      return { hash: hasher.hex(), held };
    } finally {
      hasher.free();
    }
  }

  /** Acts when no other tab fetches this blob; fails when another does and gets nowhere. */
  private async alone<T>(
    folder: FileSystemDirectoryHandle,
    { hash, size }: StoredBlob,
    signal: AbortSignal | undefined,
    act: () => Promise<T>,
  ): Promise<T> {
    const waiting = new AbortController();
    const giveUp = () => waiting.abort();
    signal?.addEventListener("abort", giveUp, { once: true });
    let grown = -1;
    const watch = setInterval(() => {
      void fileAt(folder, `${nameOf({ hash, size })}.part`)
        .catch(() => undefined)
        .then((part) => {
          if (grown === (part?.size ?? 0)) giveUp();
          grown = part?.size ?? 0;
        });
    }, STALLED_MS);
    try {
      return await navigator.locks.request(lockName(this.pool, hash), { signal: waiting.signal }, () => {
        clearInterval(watch);
        return act();
      });
    } finally {
      clearInterval(watch);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  private remember({ hash }: StoredBlob, file: Promise<File | undefined>): void {
    this.known.delete(hash);
    this.known.set(hash, file);
    const forget = () => this.known.get(hash) === file && this.known.delete(hash);
    void file.then((file) => file ?? forget(), forget);
    const [oldest] = this.known.keys();
    if (this.known.size > MOST_KNOWN && oldest !== undefined) this.known.delete(oldest);
  }

  private note(blob: StoredBlob): void {
    const now = performance.now();
    if (now - (this.noted.get(blob.hash) ?? -Infinity) < NOTE_EVERY_MS) return;
    this.noted.set(blob.hash, now);
    // If another tab notes it at the same time, once is enough.
    void poolFolder(this.pool).then((folder) => noteUse(folder, blob)).catch(() => undefined);
  }
}

async function read(file: File, from: number, to: number, write: Write, signal?: AbortSignal): Promise<void> {
  for (let at = from; at < to; at += READ) {
    const bytes = await file.slice(at, Math.min(to, at + READ)).arrayBuffer();
    signal?.throwIfAborted();
    write(at, new Uint8Array(bytes));
  }
}

export async function openAlone(part: FileSystemFileHandle): Promise<FileSystemSyncAccessHandle> {
  for (const wait of CLOSING_MS) {
    try {
      return await part.createSyncAccessHandle();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  return part.createSyncAccessHandle();
}

async function helps(signal: AbortSignal | undefined, act: () => Promise<boolean>): Promise<boolean> {
  try {
    return await act();
  } catch (error) {
    if (isOfFiles(error, signal)) return false;
    throw error;
  }
}

/** Files and locks fail with exceptions of the browser; fetching and computing with our own. */
function isOfFiles(error: unknown, signal: AbortSignal | undefined): boolean {
  signal?.throwIfAborted();
  return error instanceof DOMException || error instanceof TypeError;
}
