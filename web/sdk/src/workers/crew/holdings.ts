/** Blobs of which this browser keeps some pieces, as one tab has them open: a file is for one tab at a time, so it is
 * closed when nobody used it for a while. Another tab that needs it meanwhile does without. */

import { fileAt, lockName, poolFolder, poolName, shelved } from "../../shelf.js";
import type { StoredBlob } from "../failure.js";
import type { Hashing } from "../hashing.js";
import { Held } from "../held.js";
import { claimBytes, giveBack, nameOf, noteUse } from "../room.js";
import { PIECE } from "../source.js";

/** A file that nobody used for so long is closed: other tabs may need it, and the donor may want it removed. */
const IDLE_MS = 2_000;
/** Room is claimed for so many bytes at a time: looking at all that is kept takes longer than writing a piece. */
const CLAIMED = 32 * PIECE;
/** Pieces that wait to be written: more are not kept, so that a slow disk does not fill the memory. */
const MOST_WAITING = 64;
/** How long nothing is put here after the disk was full. */
const FULL_MS = 600_000;

interface Open {
  held: Held;
  /** Bytes for which there is room. */
  room: number;
  users: number;
  /** Pieces that wait to be written, and the last of them. */
  waiting: number;
  line: Promise<void>;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Frees the blob's lock. */
  free: () => void;
}

export class Holdings {
  private readonly pool: string;
  private readonly open = new Map<string, Promise<Open | undefined>>();
  private fullUntil = 0;

  constructor(
    base: string,
    private readonly hashing: Hashing,
    /** Whether all of it is on its way into another file. */
    private readonly isComing: (hash: string) => boolean,
  ) {
    this.pool = poolName(base);
  }

  /** What this browser keeps of this pool, as the notes tell. */
  async all(): Promise<{ blob: StoredBlob; pieces: Uint32Array }[]> {
    const kept = (await shelved()).filter(({ pool, kind }) => pool === this.pool && kind === "held");
    const noted = kept.map(async ({ folder, hash, size }) => {
      const blob = { hash, size };
      return { blob, pieces: await Held.noted(folder, blob).catch(() => new Uint32Array(0)) };
    });
    return (await Promise.all(noted)).filter(({ pieces }) => pieces.length > 0);
  }

  /** Uses what is kept of a blob; none if another tab does, or all of it is here or on its way. Who calls says when it is
   * done with it. */
  async use(blob: StoredBlob): Promise<Use | undefined> {
    if (this.isComing(blob.hash)) return undefined;
    const known = this.open.get(blob.hash) ?? this.begin(blob);
    const open = await known.catch(() => undefined);
    if (!open || this.open.get(blob.hash) !== known) return undefined;
    clearTimeout(open.timer);
    open.users += 1;
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      open.users -= 1;
      if (open.users > 0) return;
      open.timer = setTimeout(() => this.open.get(blob.hash) === known && void this.close(blob.hash), IDLE_MS);
    };
    return {
      held: open.held,
      end,
      claim: (bytes) => this.claim(open, bytes),
      put: (...piece) => this.queue(open, ...piece),
      written: () => open.line,
    };
  }

  /** Nothing more is read or written; resolves when the file is free. */
  async close(hash: string): Promise<void> {
    const known = this.open.get(hash);
    this.open.delete(hash);
    const open = await known?.catch(() => undefined);
    if (!open) return;
    clearTimeout(open.timer);
    await open.held.close();
    open.free();
  }

  private begin(blob: StoredBlob): Promise<Open | undefined> {
    const begun = new Promise<Open | undefined>((resolve, reject) => {
      const lock = navigator.locks.request(lockName(this.pool, blob.hash), { ifAvailable: true }, async (lock) => {
        const folder = lock && (await poolFolder(this.pool));
        if (!folder || (await fileAt(folder, nameOf(blob)))) return resolve(undefined);
        const held = await Held.open(folder, blob, this.hashing);
        void noteUse(folder, blob).catch(() => undefined);
        await new Promise<void>((free) => resolve({ held, room: 0, users: 0, waiting: 0, line: Promise.resolve(), timer: undefined, free }));
      });
      lock.catch(reject);
    });
    this.open.set(blob.hash, begun);
    const forget = () => this.open.get(blob.hash) === begun && this.open.delete(blob.hash);
    void begun.then((open) => open ?? forget(), forget);
    return begun;
  }

  private async claim(open: Open, bytes: number): Promise<boolean> {
    if (performance.now() < this.fullUntil) return false;
    if (open.room >= bytes) return true;
    const more = Math.max(bytes - open.room, CLAIMED);
    // A small shelf may have room for what is needed alone.
    const claimed = (await claimBytes(more)) ? more : (await claimBytes(bytes)) ? bytes : 0;
    open.room += claimed;
    return open.room >= bytes;
  }

  /** One after the other, and between two of them others get their turn: writing keeps this Worker from all else. */
  private queue(open: Open, piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array): void {
    if (open.held.has(piece) || open.waiting >= MOST_WAITING) return;
    open.waiting += 1;
    open.line = open.line
      .then(() => new Promise((resolve) => setTimeout(resolve)))
      .then(() => {
        open.waiting -= 1;
        this.put(open, piece, bytes, hash);
      });
  }

  private put(open: Open, piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array): void {
    if (open.held.has(piece) || open.room < bytes.byteLength) return;
    try {
      open.held.put(piece, bytes, hash);
      open.room -= bytes.byteLength;
    } catch (error) {
      console.warn(`a piece could not be kept: ${String(error)}`);
      this.fullUntil = performance.now() + FULL_MS;
      open.room = 0;
      void giveBack(bytes.byteLength).catch(() => undefined);
    }
  }
}

export interface Use {
  held: Held;
  /** Whether there is room for so many bytes more. */
  claim: (bytes: number) => Promise<boolean>;
  /** Keeps a piece, if there is room. */
  put: (piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array) => void;
  /** Resolves when all that was put is written. */
  written: () => Promise<void>;
  end: () => void;
}
