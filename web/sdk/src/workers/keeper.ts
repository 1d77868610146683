/** The files of blobs of which this browser keeps some pieces, as one Worker of a tab has them open. What it is asked is
 * done one after the other, by its caller. A file is for one tab at a time; another that needs it meanwhile does without. */

import { fileAt, lockName, poolFolder, poolName } from "../shelf.js";
import type { StoredBlob } from "./failure.js";
import type { Hashing } from "./hashing.js";
import { Held } from "./held.js";
import { claimBytes, giveBack, nameOf, noteUse } from "./room.js";
import { PIECE } from "./source.js";

/** So long it is open at most: who waits for it, in this tab or another, gets its turn. */
const TURN_MS = 5_000;
/** Room is claimed for so many bytes at a time: looking at all that is kept takes longer than writing a piece. */
const CLAIMED = 32 * PIECE;
/** How long nothing is put here after the disk was full. */
const FULL_MS = 600_000;

interface Open {
  held: Held;
  /** Bytes for which there is room. */
  room: number;
  since: number;
  /** Frees the blob's lock; resolves when it is free. */
  free: () => Promise<unknown>;
}

export class Keeper {
  private readonly pool: string;
  private readonly open = new Map<string, Open>();
  private fullUntil = 0;

  constructor(
    base: string,
    private readonly hashing: Hashing,
  ) {
    this.pool = poolName(base);
  }

  /** The pieces there are; none is known of a blob that is not open. */
  has({ hash }: StoredBlob): Uint32Array | undefined {
    return this.open.get(hash)?.held.pieces;
  }

  async read(blob: StoredBlob, piece: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return (await this.opened(blob))?.held.read(piece);
  }

  /** Keeps a piece whose bytes have this hash, if there is room. */
  async put(blob: StoredBlob, piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array): Promise<void> {
    if (performance.now() < this.fullUntil) return;
    const open = await this.opened(blob);
    if (!open || open.held.has(piece) || !(await hasRoom(open, bytes.byteLength))) return;
    try {
      open.held.put(piece, bytes, hash);
      open.room -= bytes.byteLength;
    } catch (error) {
      console.warn(`a piece could not be kept: ${String(error)}`);
      this.fullUntil = performance.now() + FULL_MS;
      open.room = 0;
      await giveBack(bytes.byteLength);
    }
  }

  async close(hash: string): Promise<void> {
    const open = this.open.get(hash);
    this.open.delete(hash);
    await open?.held.close();
    await open?.free();
  }

  private async opened(blob: StoredBlob): Promise<Open | undefined> {
    const known = this.open.get(blob.hash);
    if (known && performance.now() - known.since < TURN_MS) return known;
    if (known) await this.close(blob.hash);
    const open = await this.begin(blob);
    if (open) this.open.set(blob.hash, open);
    return open;
  }

  /** None if another tab has it open, or all of it is here. */
  private begin(blob: StoredBlob): Promise<Open | undefined> {
    return new Promise((resolve, reject) => {
      const lock = navigator.locks.request(lockName(this.pool, blob.hash), { ifAvailable: true }, async (mine) => {
        const folder = mine && (await poolFolder(this.pool));
        if (!folder) return resolve(undefined);
        if (await fileAt(folder, nameOf(blob))) {
          await Held.remove(folder, blob);
          return resolve(undefined);
        }
        const held = await Held.open(folder, blob, this.hashing);
        void noteUse(folder, blob).catch(() => undefined);
        await new Promise<void>((end) => {
          const free = () => {
            end();
            return lock;
          };
          resolve({ held, room: 0, since: performance.now(), free });
        });
      });
      lock.catch(reject);
    });
  }
}

async function hasRoom(open: Open, bytes: number): Promise<boolean> {
  if (open.room >= bytes) return true;
  // A small shelf may have room for this one alone.
  const claimed = (await claimBytes(CLAIMED)) ? CLAIMED : (await claimBytes(bytes)) ? bytes : 0;
  open.room += claimed;
  return claimed > 0;
}
