/** Lowers a module's memory maximum to what its job may use: a browser lets memory grow up to the maximum, and has no
 * other way to say no. Done here and not before the module is sent, because what is signed are the module's own bytes. */

import { UnitError } from "../blobs.js";

const PAGE = 65_536;
const HEADER = 8;
const IMPORTS = 2;
const MEMORIES = 5;
/** Bits of a memory's first byte. */
const HAS_MAXIMUM = 1;
const IS_64_BIT = 4;
const HAS_PAGE_SIZE = 8;
/** What can be imported, by the byte in front of it. */
const FUNCTION = 0;
const TABLE = 1;
const MEMORY = 2;
const GLOBAL = 3;
const TAG = 4;

/** The same module, whose memory grows to at most `limit` bytes. */
export function lowerMemory(wasm: Uint8Array, limit: number): Uint8Array<ArrayBuffer> {
  const read = new Reader(wasm);
  read.skip(HEADER);
  const pieces: Uint8Array[] = [wasm.subarray(0, HEADER)];
  const pages = Math.floor(limit / PAGE);
  let memories = 0;
  while (read.at < wasm.length) {
    const from = read.at;
    const id = read.byte();
    const size = read.number();
    const body = new Reader(wasm.subarray(0, read.at + size), read.at);
    read.skip(size);
    if (id === IMPORTS) refuseImported(body);
    if (id !== MEMORIES) {
      pieces.push(wasm.subarray(from, read.at));
      continue;
    }
    const count = body.number();
    memories += count;
    const lowered = Array.from({ length: Math.min(count, 2) }, () => lower(body, pages)).flat();
    const section = [...varint(count), ...lowered];
    pieces.push(new Uint8Array([MEMORIES, ...varint(section.length), ...section]));
  }
  if (memories > 1) throw refused(`the program has ${memories} memories; one is known`);
  return join(pieces);
}

function lower(read: Reader, pages: number): number[] {
  const flags = read.byte();
  if ((flags & (IS_64_BIT | HAS_PAGE_SIZE)) !== 0) throw refused("the program's memory is of a kind no node knows");
  const least = read.number();
  if (least > pages) {
    throw refused(`the program starts with ${mebi(least)} MiB of memory; the job allows ${mebi(pages)} MiB`);
  }
  const most = (flags & HAS_MAXIMUM) === 0 ? pages : Math.min(read.number(), pages);
  return [flags | HAS_MAXIMUM, ...varint(least), ...varint(most)];
}

/** Nobody gives a program a memory, so one that wants it cannot start; what else is imported, the browser looks at. */
function refuseImported(read: Reader): void {
  for (let left = read.number(); left > 0; left--) {
    read.skip(read.number());
    read.skip(read.number());
    const kind = read.byte();
    if (kind === MEMORY) throw refused("the program imports its memory; expected one of its own");
    if (kind === FUNCTION) read.number();
    else if (kind === GLOBAL) read.skip(2);
    else if (kind === TAG) {
      read.skip(1);
      read.number();
    } else if (kind === TABLE) {
      read.skip(1);
      const flags = read.byte();
      read.number();
      if ((flags & HAS_MAXIMUM) !== 0) read.number();
    } else throw refused(`the program imports something of the unknown kind ${kind}`);
  }
}

class Reader {
  constructor(
    private readonly bytes: Uint8Array,
    public at = 0,
  ) {}

  byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw refused("the program ends in the middle of a section");
    return byte;
  }

  /** Up to 35 bits, seven in each byte, the lowest first. */
  number(): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 28; scale *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
    throw refused("the program holds a number that is too long");
  }

  skip(count: number): void {
    this.at += count;
    if (this.at > this.bytes.length) throw refused("the program ends in the middle of a section");
  }
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value % 128) | 0x80, ...varint(Math.floor(value / 128))];
}

function join(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function mebi(pages: number): number {
  return Math.floor((pages * PAGE) / 2 ** 20);
}

function refused(message: string): UnitError {
  return new UnitError({ kind: "kernel", message });
}
