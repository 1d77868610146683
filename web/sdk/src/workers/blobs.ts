/** Inputs in, results out: what every engine Worker has of the coordinator and of this browser's shelf. */

import { MAX_INLINE_BYTES, SHARED_FROM } from "../constants.js";
import { fetchFailed, mustBeItself, refused, type StoredBlob } from "./failure.js";
import type { Hashing } from "./hashing.js";
import type { ToEngine, UnitResult, UnitSpan } from "./messages.js";
import { type Ask, Ranges } from "./ranges.js";
import { Shelf } from "./shelf.js";
import { PIECE, Source, type Write } from "./source.js";

export { type StoredBlob, UnitError } from "./failure.js";

/** Blobs up to this size are fetched whole and kept for the job; of larger ones only what a unit needs. */
const KEEP_WHOLE = 4 << 20;
/** Blobs beyond this size are shared by the tabs of a browser: smaller ones come faster than files are opened. */
const SHELVED_FROM = 256 << 10;

export class Blobs {
  private readonly kept = new Map<string, Promise<ArrayBuffer>>();
  private readonly users = new Map<number, Set<string>>();
  private readonly source: Source;
  private readonly shelf: Shelf | undefined;
  private readonly ranges: Ranges;

  constructor(
    base: string,
    session: string,
    private readonly hashing: Hashing,
    /** Asks other devices for a blob, if there is somebody who can. */
    private readonly need: (blob: StoredBlob) => Promise<void> = () => Promise.resolve(),
    /** Asks them for pieces of one. */
    ask?: Ask,
    /** Where they are, of a page that is no node. */
    path?: string,
  ) {
    this.source = new Source(base, session, path);
    this.shelf = Shelf.open(base, this.source, hashing);
    this.ranges = new Ranges(this.source, hashing, this.shelf && ask);
  }

  setSession(session: string): void {
    this.source.setSession(session);
  }

  /** What the brain Worker says of pieces that are sought. */
  hear(said: Extract<ToEngine, { type: "found" | "stream" }>): void {
    this.ranges.hear(said);
  }

  /** All of a blob, kept until the job is forgotten. */
  whole(job: number, blob: StoredBlob): Promise<ArrayBuffer> {
    const users = this.users.get(job) ?? new Set();
    this.users.set(job, users.add(blob.hash));
    let bytes = this.kept.get(blob.hash);
    if (!bytes) {
      // Without a signal: other units wait for the same bytes.
      bytes = this.fetchWhole(blob);
      this.kept.set(blob.hash, bytes);
      bytes.catch(() => this.kept.delete(blob.hash));
    }
    return bytes;
  }

  /** All of a blob, not kept in memory: the caller does. `onBytes` is told how many are here. */
  async all(blob: StoredBlob, signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.fetchWhole(blob, signal, onBytes));
  }

  /** Puts all of a blob on the shelf, so that ranges of it are read there. Without room for it they are fetched. */
  async shelve(blob: StoredBlob, onBytes: (bytes: number) => void): Promise<void> {
    if (!this.shelf || blob.size <= KEEP_WHOLE) return;
    await this.ask(blob);
    await this.shelf.all(blob, (at, { byteLength }) => onBytes(at + byteLength));
  }

  /** All of a blob that one unit alone reads: it would only push others off the shelf. */
  async once(blob: StoredBlob, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.fetchRight(blob, signal));
  }

  async range(
    job: number,
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (to > blob.size || from > to) {
      throw fetchFailed(blob, `bytes ${from} to ${to} were asked for, it has ${blob.size}`);
    }
    if (from === to) return new Uint8Array(0);
    if (blob.size <= KEEP_WHOLE) {
      return new Uint8Array(await this.whole(job, blob), from, to - from);
    }
    return new Uint8Array(await this.fetchRange(blob, from, to, { signal, isKept: true }));
  }

  /** Some bytes of a blob that nobody needs again. */
  async part(blob: StoredBlob, from: number, to: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (to - from === blob.size) return this.once(blob, signal);
    return new Uint8Array(await this.fetchRange(blob, from, to, { signal, isKept: false }));
  }

  /** Hands on a part of a blob in pieces of a whole number of words, all but the last; the piece is used again. A place
   * may be written twice: what was there last is right. */
  async stream(
    job: number,
    blob: StoredBlob,
    from: number,
    to: number,
    write: Write,
    signal?: AbortSignal,
  ): Promise<void> {
    if (blob.size <= KEEP_WHOLE || to - from <= PIECE) {
      write(0, await this.range(job, blob, from, to, signal));
      return;
    }
    const isWhole = to - from === blob.size;
    if (isWhole) await this.ask(blob);
    const here: Write = (at, bytes) => write(at - from, bytes);
    const shelved = isWhole ? this.shelf?.all(blob, here, signal) : this.shelf?.part(blob, from, to, here, signal);
    if (await shelved) return;
    // Pieces begin where they do in the blob, which must be a whole number of words from here.
    if (!isWhole && from % 4 === 0 && (await this.ranges.get(blob, from, to, here, signal))) return;
    const hasher = isWhole ? this.hashing.begin() : undefined;
    try {
      const heard: Write = (at, bytes) => {
        hasher?.update(bytes);
        here(at, bytes);
      };
      await this.source.pour(blob, from, to, heard, signal);
      if (hasher) mustBeItself(blob, hasher.hex());
    } finally {
      hasher?.free();
    }
  }

  forget(job: number): void {
    const hashes = this.users.get(job) ?? new Set();
    this.users.delete(job);
    for (const hash of hashes) {
      if (![...this.users.values()].some((users) => users.has(hash))) this.kept.delete(hash);
    }
  }

  /** Stores a unit's result, or leaves it inline if it is small. */
  async deliver(
    unit: Pick<UnitSpan, "job" | "attempt">,
    bytes: Uint8Array<ArrayBuffer>,
    signal?: AbortSignal,
  ): Promise<UnitResult> {
    if (bytes.byteLength <= MAX_INLINE_BYTES) return { inline: bytes.slice() };
    const path = `/node/results/${unit.job}/${unit.attempt}`;
    const answer = await this.put(path, bytes, `storing the result of unit ${unit.attempt}`, signal);
    return (await answer.json()) as StoredBlob;
  }

  async put(path: string, bytes: Uint8Array<ArrayBuffer>, what: string, signal?: AbortSignal): Promise<Response> {
    const answer = await this.source.request(path, { method: "PUT", body: bytes }, signal);
    if (!answer.ok) throw await refused(what, answer);
    return answer;
  }

  private async fetchWhole(blob: StoredBlob, signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<ArrayBuffer> {
    if (this.shelf && blob.size > SHELVED_FROM) {
      await this.ask(blob);
      const bytes = new Uint8Array(blob.size);
      const write: Write = (at, piece) => {
        bytes.set(piece, at);
        onBytes?.(at + piece.byteLength);
      };
      if (await this.shelf.all(blob, write, signal)) return bytes.buffer;
    }
    return this.fetchRight(blob, signal);
  }

  /** Large blobs come from other devices, in pieces, onto the shelf; without one they have no place. */
  private async ask(blob: StoredBlob): Promise<void> {
    if (this.shelf && blob.size >= SHARED_FROM && !(await this.shelf.has(blob))) await this.need(blob);
  }

  private async fetchRight(blob: StoredBlob, signal?: AbortSignal): Promise<ArrayBuffer> {
    const bytes = await this.source.range(blob, 0, blob.size, signal);
    mustBeItself(blob, this.hashing.hex(new Uint8Array(bytes)));
    return bytes;
  }

  /** Of a large blob in pieces that are checked and kept. Of others only the length of a part can be checked. */
  private async fetchRange(
    blob: StoredBlob,
    from: number,
    to: number,
    { signal, isKept }: { signal: AbortSignal | undefined; isKept: boolean },
  ): Promise<ArrayBuffer> {
    if (blob.size <= SHELVED_FROM) return this.source.range(blob, from, to, signal);
    const bytes = new Uint8Array(to - from);
    const write: Write = (at, piece) => bytes.set(piece, at - from);
    if (await this.shelf?.part(blob, from, to, write, signal)) return bytes.buffer;
    if (isKept && (await this.ranges.get(blob, from, to, write, signal))) return bytes.buffer;
    return this.source.range(blob, from, to, signal);
  }
}
