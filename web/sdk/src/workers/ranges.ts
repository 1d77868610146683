/** Some bytes of a large blob, for an engine Worker: in pieces, each checked by its hash before it is handed on. The brain
 * Worker has those that this browser keeps, and those that other devices give; what it says to stream comes from the
 * coordinator in one go, as it would without pieces, and is given to the brain Worker to keep. */

import { SHARED_FROM } from "../constants.js";
import { fetchFailed, type StoredBlob } from "./failure.js";
import { type Hashing, hexOf } from "./hashing.js";
import type { FromEngine, ToEngine } from "./messages.js";
import { PIECE, type Source, type Write } from "./source.js";

/** Pieces of one blob (`MAX_PIECES` of the protocol): of larger ones nobody keeps books. */
const MOST_PIECES = 1 << 16;
/** A range fills at least this much of the pieces it lies in, or is fetched as it is: what is around it came for nobody. */
const FILLED = 1 / 2;
/** Blobs whose pieces' hashes are kept: as many as one job has inputs, and those of the next. */
const MOST_LISTS = 32;

/** To the brain Worker. */
export type Ask = (said: FromSeeker, transfer?: Transferable[]) => void;
type FromSeeker = Extract<FromEngine, { type: "seek" | "keep" | "sought" }>;
type ToSeeker = Extract<ToEngine, { type: "found" | "stream" }>;

export class Ranges {
  private readonly lists = new Map<string, Promise<Uint8Array>>();
  private readonly seeks = new Map<number, Seek>();
  private last = 0;

  constructor(
    private readonly source: Source,
    private readonly hashing: Hashing,
    /** Without it everything comes from the coordinator. */
    private readonly ask: Ask | undefined,
  ) {}

  /** Hands on some bytes of a blob, each piece with its place. False if it does not go by pieces. */
  async get(blob: StoredBlob, from: number, to: number, write: Write, signal?: AbortSignal): Promise<boolean> {
    if (!isFit(blob, from, to)) return false;
    const hashes = await this.hashes(blob);
    signal?.throwIfAborted();
    const id = ++this.last;
    const seek = new Seek({ blob, from, to, hashes, write });
    const { first, end } = seek;
    const abort = () => seek.fail(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    this.seeks.set(id, seek);
    try {
      const { hash, size } = blob;
      if (this.ask) this.ask({ type: "seek", seek: id, blob: { hash, size }, first, end, hashes });
      else this.stream(id, seek, seek.lacking());
      await seek.done;
      return true;
    } catch (error) {
      // Not when all came: a connection that is read to its end serves the next range too.
      seek.over.abort();
      throw error;
    } finally {
      this.seeks.delete(id);
      signal?.removeEventListener("abort", abort);
      this.ask?.({ type: "sought", seek: id });
    }
  }

  hear(said: ToSeeker): void {
    const seek = this.seeks.get(said.seek);
    if (!seek) return;
    if (said.type === "found") seek.take(said.piece, said.bytes);
    else this.stream(said.seek, seek, said.pieces);
  }

  /** From the coordinator: pieces that follow each other in one request. */
  private stream(id: number, seek: Seek, pieces: number[]): void {
    const { blob, over } = seek;
    const each: Write = (at, bytes) => {
      const piece = at / PIECE;
      if (this.hashing.hex(bytes) !== seek.hashOf(piece)) throw fetchFailed(blob, `other bytes came for piece ${piece}`);
      seek.take(piece, bytes);
      if (this.ask) this.ask({ type: "keep", seek: id, piece, bytes }, [bytes.buffer]);
    };
    const all = async () => {
      for (const [first, end] of runs(pieces)) {
        await this.source.pour(blob, first * PIECE, Math.min(end * PIECE, blob.size), each, over.signal);
      }
    };
    all().catch((error: unknown) => seek.fail(error));
  }

  /** Without them nothing can be said of its pieces. */
  private hashes(blob: StoredBlob): Promise<Uint8Array> {
    const known = this.lists.get(blob.hash);
    if (known) return known;
    const list = this.source.pieces(blob).then((list) => {
      if (list.byteLength === 32 * Math.ceil(blob.size / PIECE)) return list;
      throw fetchFailed(blob, "its pieces have not one hash each");
    });
    this.lists.set(blob.hash, list);
    list.catch(() => this.lists.delete(blob.hash));
    const [oldest] = this.lists.keys();
    if (this.lists.size > MOST_LISTS && oldest !== undefined) this.lists.delete(oldest);
    return list;
  }
}

interface Wanted {
  blob: StoredBlob;
  from: number;
  to: number;
  hashes: Uint8Array;
  write: Write;
}

class Seek {
  readonly blob: StoredBlob;
  readonly first: number;
  readonly end: number;
  readonly done: Promise<void>;
  /** Ends what still comes. */
  readonly over = new AbortController();
  private readonly lacks: Set<number>;
  private succeed: () => void = () => undefined;
  fail: (error: unknown) => void = () => undefined;

  constructor(private readonly wanted: Wanted) {
    const { blob, from, to } = wanted;
    this.blob = blob;
    [this.first, this.end] = [Math.floor(from / PIECE), Math.ceil(to / PIECE)];
    this.lacks = new Set(Array.from({ length: this.end - this.first }, (_, at) => this.first + at));
    this.done = new Promise((resolve, reject) => ([this.succeed, this.fail] = [resolve, reject]));
    this.done.catch(() => undefined);
  }

  lacking(): number[] {
    return [...this.lacks];
  }

  hashOf(piece: number): string {
    return hexOf(this.wanted.hashes.subarray(piece * 32, piece * 32 + 32));
  }

  /** Hands on what is asked for of a piece that is right, once. */
  take(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.lacks.delete(piece)) return;
    const { from, to, write } = this.wanted;
    const at = piece * PIECE;
    const [start, end] = [Math.max(from, at), Math.min(to, at + bytes.byteLength)];
    try {
      write(start, bytes.subarray(start - at, end - at));
    } catch (error) {
      this.fail(error);
    }
    if (this.lacks.size === 0) this.succeed();
  }
}

/** Whether it is worth going by pieces. */
function isFit({ size }: StoredBlob, from: number, to: number): boolean {
  const isShared = size >= SHARED_FROM && size <= MOST_PIECES * PIECE;
  const [start, end] = [Math.floor(from / PIECE) * PIECE, Math.min(Math.ceil(to / PIECE) * PIECE, size)];
  return isShared && to - from >= (end - start) * FILLED;
}

/** Runs of numbers that follow each other, as first and end. */
function runs(pieces: number[]): [number, number][] {
  const all: [number, number][] = [];
  for (const piece of [...pieces].sort((a, b) => a - b)) {
    const last = all.at(-1);
    if (last?.[1] === piece) last[1] = piece + 1;
    else all.push([piece, piece + 1]);
  }
  return all;
}
