/** BLAKE3 for what a client signs: kernels and programs. Uploads use the faster one in WebAssembly, which must be loaded
 * first; this one is small and works wherever JavaScript does. */

const BLOCK = 64;
const CHUNK = 1024;
const CHUNK_START = 1;
const CHUNK_END = 2;
const PARENT = 4;
const ROOT = 8;
const START = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
);
/** Where each round's words come from, in terms of the round before. */
const SHUFFLE = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const ROUNDS = 7;
const ORDERS = orders();

/** The last step of a part, held back because only the whole's gets the root flag. */
interface Pending {
  chain: Uint32Array;
  words: Uint32Array;
  counter: number;
  length: number;
  flags: number;
}

export function blake3(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { chain, words, counter, length, flags } = tree(bytes, 0);
  const root = compress(chain, words, counter, length, flags | ROOT);
  const hash = new DataView(new ArrayBuffer(32));
  root.forEach((word, at) => hash.setUint32(at * 4, word, true));
  return new Uint8Array(hash.buffer);
}

/** The left part is the largest power of two of chunks that leaves something for the right one. */
function tree(bytes: Uint8Array, counter: number): Pending {
  if (bytes.length <= CHUNK) return chunk(bytes, counter);
  let left = CHUNK;
  while (left * 2 < bytes.length) left *= 2;
  const words = new Uint32Array(16);
  words.set(chainOf(tree(bytes.subarray(0, left), counter)));
  words.set(chainOf(tree(bytes.subarray(left), counter + left / CHUNK)), 8);
  return { chain: START, words, counter: 0, length: BLOCK, flags: PARENT };
}

function chunk(bytes: Uint8Array, counter: number): Pending {
  let chain: Uint32Array = START;
  let flags = CHUNK_START;
  let at = 0;
  for (; at + BLOCK < bytes.length; at += BLOCK) {
    chain = compress(chain, wordsOf(bytes, at, BLOCK), counter, BLOCK, flags);
    flags = 0;
  }
  const length = bytes.length - at;
  return { chain, words: wordsOf(bytes, at, length), counter, length, flags: flags | CHUNK_END };
}

function wordsOf(bytes: Uint8Array, from: number, length: number): Uint32Array {
  const words = new Uint32Array(16);
  for (let i = 0; i < length; i++) words[i >> 2]! |= bytes[from + i]! << ((i & 3) * 8);
  return words;
}

function chainOf({ chain, words, counter, length, flags }: Pending): Uint32Array {
  return compress(chain, words, counter, length, flags);
}

function compress(
  chain: Uint32Array,
  words: Uint32Array,
  counter: number,
  length: number,
  flags: number,
): Uint32Array {
  const v = new Uint32Array(16);
  v.set(chain);
  v.set(START.subarray(0, 4), 8);
  v[12] = counter;
  v[13] = counter / 2 ** 32;
  v[14] = length;
  v[15] = flags;
  for (const order of ORDERS) {
    mix(v, 0, 4, 8, 12, words[order[0]!]!, words[order[1]!]!);
    mix(v, 1, 5, 9, 13, words[order[2]!]!, words[order[3]!]!);
    mix(v, 2, 6, 10, 14, words[order[4]!]!, words[order[5]!]!);
    mix(v, 3, 7, 11, 15, words[order[6]!]!, words[order[7]!]!);
    mix(v, 0, 5, 10, 15, words[order[8]!]!, words[order[9]!]!);
    mix(v, 1, 6, 11, 12, words[order[10]!]!, words[order[11]!]!);
    mix(v, 2, 7, 8, 13, words[order[12]!]!, words[order[13]!]!);
    mix(v, 3, 4, 9, 14, words[order[14]!]!, words[order[15]!]!);
  }
  return v.subarray(0, 8).map((word, at) => word ^ v[at + 8]!);
}

function mix(v: Uint32Array, a: number, b: number, c: number, d: number, x: number, y: number): void {
  v[a] = v[a]! + v[b]! + x;
  v[d] = turn(v[d]! ^ v[a]!, 16);
  v[c] = v[c]! + v[d]!;
  v[b] = turn(v[b]! ^ v[c]!, 12);
  v[a] = v[a]! + v[b]! + y;
  v[d] = turn(v[d]! ^ v[a]!, 8);
  v[c] = v[c]! + v[d]!;
  v[b] = turn(v[b]! ^ v[c]!, 7);
}

function turn(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

function orders(): number[][] {
  const all = [Array.from({ length: 16 }, (_, at) => at)];
  while (all.length < ROUNDS) {
    const last = all[all.length - 1] ?? [];
    all.push(SHUFFLE.map((from) => last[from] ?? 0));
  }
  return all;
}
