/** What this browser keeps of blobs in pieces, for the brain Worker: which there are it knows, their files another Worker
 * has (`keep.ts`), which is started when the first of them is read or written. */

import { startable } from "../../join/places.js";
import { poolFolder, poolName, shelved } from "../../shelf.js";
import type { StoredBlob } from "../failure.js";
import { Held } from "../held.js";
import type { FromKeeper, ToKeeper } from "../messages.js";
import type { Pool } from "./host.js";

/** Pieces that wait to be written: more are not kept, so that a slow disk does not fill the memory. */
const MOST_WAITING = 64;

type Answer = Pick<FromKeeper, "bytes" | "has">;
type Asked<T> = T extends { id: number } ? Omit<T, "id"> : never;

export class Holdings {
  private readonly name: string;
  private readonly kept = new Map<string, ReadonlySet<number>>();
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private worker: Promise<Worker> | undefined;
  private isBroken = false;
  private puts = 0;
  private last = 0;
  /** What there was at the beginning is known. */
  readonly known: Promise<unknown>;

  constructor(
    private readonly pool: Pool,
    /** Whether all of it is on its way into another file. */
    private readonly isComing: (hash: string) => boolean,
  ) {
    this.name = poolName(pool.base);
    this.known = this.look().catch(() => undefined);
  }

  /** Blobs of which there are some pieces, as the notes tell. */
  async look(): Promise<StoredBlob[]> {
    const held = (await shelved()).filter(({ pool, kind }) => pool === this.name && kind === "held");
    await Promise.all(held.map((blob) => this.lookAt(blob)));
    return held.filter(({ hash }) => this.kept.has(hash)).map(({ hash, size }) => ({ hash, size }));
  }

  /** Looks anew what there is of a blob. */
  async lookAt({ hash, size }: StoredBlob): Promise<void> {
    this.learn(hash, await Held.noted(await poolFolder(this.name), { hash, size }).catch(() => []));
  }

  /** Those there are, as far as is known. */
  pieces(hash: string): ReadonlySet<number> {
    return (this.isComing(hash) ? undefined : this.kept.get(hash)) ?? new Set();
  }

  async read(blob: StoredBlob, piece: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (this.isComing(blob.hash)) return undefined;
    const { bytes, has } = await this.ask({ type: "read", blob, piece });
    // Not open: another tab has it, or it is gone.
    this.learn(blob.hash, has ?? []);
    return bytes;
  }

  /** Gives a piece away to be written; resolves when it is, or will not be. */
  async put(blob: StoredBlob, piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array): Promise<void> {
    const { hash: name } = blob;
    if (this.isComing(name) || this.pieces(name).has(piece) || this.puts >= MOST_WAITING) return;
    this.puts += 1;
    const { has } = await this.ask({ type: "put", blob, piece, bytes, hash }, [bytes.buffer]);
    this.puts -= 1;
    if (has) this.learn(name, has);
  }

  /** All that was put is written then, and the file is free. */
  async close(blob: StoredBlob): Promise<void> {
    if (this.worker) await this.ask({ type: "close", blob });
  }

  private learn(hash: string, pieces: Iterable<number>): void {
    const all = new Set(pieces);
    if (all.size > 0) this.kept.set(hash, all);
    else this.kept.delete(hash);
  }

  private async ask(asked: Asked<ToKeeper>, transfer: Transferable[] = []): Promise<Answer> {
    const nothing = { bytes: undefined, has: undefined };
    if (this.isBroken) return nothing;
    this.worker ??= this.start();
    const worker = await this.worker.catch((error: unknown) => this.fail(String(error)));
    if (!worker || this.isBroken) return nothing;
    const id = ++this.last;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      worker.postMessage({ ...asked, id } satisfies ToKeeper, transfer);
    });
  }

  private async start(): Promise<Worker> {
    const { base, hashing, keepWorker } = this.pool;
    const worker = new Worker(await startable(keepWorker), { type: "module" });
    worker.onmessage = ({ data: { id, bytes, has } }: MessageEvent<FromKeeper>) => {
      this.waiting.get(id)?.({ bytes, has });
      this.waiting.delete(id);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.fail(event.message || "its code could not be loaded");
    };
    worker.postMessage({ type: "open", base, hashing } satisfies ToKeeper);
    return worker;
  }

  /** Nothing is kept any more as long as this tab lives; who waits goes on without. */
  private fail(why: string): undefined {
    if (!this.isBroken) console.warn(`no pieces are kept: ${why}`);
    this.isBroken = true;
    this.kept.clear();
    for (const answer of this.waiting.values()) answer({ bytes: undefined, has: undefined });
    this.waiting.clear();
    return undefined;
  }
}
