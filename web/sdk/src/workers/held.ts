/** A blob of which this browser keeps some pieces. `.held` has them one behind the other, in places of one size, as they
 * came: it takes what they take, wherever in the blob they lie. `.pieces` is the note, one record for each place: the
 * piece's number and its hash. A piece counts when its record is there, which is written after its bytes; what a tab left
 * in the middle, or a disk changed, is found by the hash when a Worker first reads it. Who opens one has the blob's lock. */

import { absentAs, fileAt } from "../shelf.js";
import type { StoredBlob } from "./failure.js";
import { type Hashing, hexOf } from "./hashing.js";
import { nameOf } from "./room.js";
import { openAlone } from "./shelf.js";
import { PIECE } from "./source.js";

/** A record: the piece's number, little-endian, and its hash. */
const RECORD = 4 + 32;
/** Stands for no piece: the place is free. */
const NONE = 0xffff_ffff;

interface Place {
  at: number;
  hash: string;
}

export class Held {
  /** Where each piece is. */
  private readonly places = new Map<number, Place>();
  /** Places without a piece, and how many there are in all. */
  private readonly free: number[] = [];
  private count = 0;
  /** Pieces that this Worker wrote, or found to have their hash. */
  private readonly right = new Set<number>();
  private isClosed = false;

  private constructor(
    private readonly folder: FileSystemDirectoryHandle,
    readonly blob: StoredBlob,
    private readonly file: FileSystemSyncAccessHandle,
    private readonly note: FileSystemSyncAccessHandle,
    private readonly hashing: Hashing,
  ) {}

  /** What is there, or an empty one. */
  static async open(folder: FileSystemDirectoryHandle, blob: StoredBlob, hashing: Hashing): Promise<Held> {
    const file = await openAlone(await folder.getFileHandle(fileName(blob), { create: true }));
    try {
      const note = await openAlone(await folder.getFileHandle(noteName(blob), { create: true }));
      const held = new Held(folder, blob, file, note, hashing);
      held.recall();
      return held;
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** The pieces that a note tells of, told without a lock: a tab may be writing. */
  static async noted(folder: FileSystemDirectoryHandle, blob: StoredBlob): Promise<Uint32Array> {
    const [file, note] = await Promise.all([fileAt(folder, fileName(blob)), fileAt(folder, noteName(blob))]);
    if (!file || !note) return new Uint32Array(0);
    const records = new Uint8Array(await note.arrayBuffer());
    const there = Array.from({ length: Math.floor(records.byteLength / RECORD) }, (_, at) => {
      const piece = pieceOf(records, at);
      return isThere(blob, piece, at, file.size) ? [piece] : [];
    });
    return Uint32Array.from(new Set(there.flat()));
  }

  /** Who calls has the blob's lock, and it is not open. */
  static async remove(folder: FileSystemDirectoryHandle, blob: StoredBlob): Promise<void> {
    await absentAs(undefined, () => folder.removeEntry(noteName(blob)));
    await absentAs(undefined, () => folder.removeEntry(fileName(blob)));
  }

  get pieces(): Uint32Array {
    return Uint32Array.from(this.places.keys());
  }

  get isOpen(): boolean {
    return !this.isClosed;
  }

  has(piece: number): boolean {
    return this.isOpen && this.places.has(piece);
  }

  /** A piece that is here. One that is not what it was is not here any more. */
  read(piece: number): Uint8Array<ArrayBuffer> | undefined {
    const place = this.isOpen ? this.places.get(piece) : undefined;
    if (!place) return undefined;
    const bytes = new Uint8Array(pieceSize(this.blob, piece));
    const isAll = this.file.read(bytes, { at: place.at * PIECE }) === bytes.byteLength;
    if (isAll && (this.right.has(piece) || this.hashing.hex(bytes) === place.hash)) {
      this.right.add(piece);
      return bytes;
    }
    console.warn(`piece ${piece} of blob ${this.blob.hash} was changed on the disk`);
    this.places.delete(piece);
    this.mark(place.at, NONE, new Uint8Array(32));
    this.free.push(place.at);
    return undefined;
  }

  /** Keeps a piece whose bytes have this hash. Fails where there is no room. */
  put(piece: number, bytes: Uint8Array<ArrayBuffer>, hash: Uint8Array): void {
    if (!this.isOpen || this.places.has(piece) || bytes.byteLength !== pieceSize(this.blob, piece)) return;
    const at = this.free.pop() ?? this.count;
    writeAll(this.file, bytes, at * PIECE);
    this.mark(at, piece, hash);
    this.count = Math.max(this.count, at + 1);
    this.places.set(piece, { at, hash: hexOf(hash) });
    this.right.add(piece);
  }

  async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isClosed = true;
    this.file.close();
    this.note.close();
    if (this.places.size === 0) await Held.remove(this.folder, this.blob).catch(() => undefined);
  }

  private recall(): void {
    const records = new Uint8Array(this.note.getSize());
    this.note.read(records, { at: 0 });
    const size = this.file.getSize();
    // What was written of a last record without its end is written over.
    this.count = Math.floor(records.byteLength / RECORD);
    for (let at = 0; at < this.count; at++) {
      const piece = pieceOf(records, at);
      const hash = hexOf(records.subarray(at * RECORD + 4, (at + 1) * RECORD));
      if (isThere(this.blob, piece, at, size) && !this.places.has(piece)) this.places.set(piece, { at, hash });
      else this.free.push(at);
    }
  }

  private mark(at: number, piece: number, hash: Uint8Array): void {
    const record = new Uint8Array(RECORD);
    new DataView(record.buffer).setUint32(0, piece, true);
    record.set(hash, 4);
    writeAll(this.note, record, at * RECORD);
  }
}

export function pieceSize({ size }: StoredBlob, piece: number): number {
  return Math.max(0, Math.min(PIECE, size - piece * PIECE));
}

function isThere(blob: StoredBlob, piece: number, at: number, size: number): boolean {
  return piece !== NONE && pieceSize(blob, piece) > 0 && at * PIECE + pieceSize(blob, piece) <= size;
}

function pieceOf(records: Uint8Array, at: number): number {
  return new DataView(records.buffer, records.byteOffset).getUint32(at * RECORD, true);
}

function writeAll(file: FileSystemSyncAccessHandle, bytes: Uint8Array<ArrayBuffer>, at: number): void {
  if (file.write(bytes, { at }) < bytes.byteLength) throw new DOMException("no room", "QuotaExceededError");
}

function fileName(blob: StoredBlob): string {
  return `${nameOf(blob)}.held`;
}

function noteName(blob: StoredBlob): string {
  return `${nameOf(blob)}.pieces`;
}
