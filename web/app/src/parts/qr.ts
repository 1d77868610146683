/**
 * QR codes: bytes in, black modules out. Byte mode, error correction M, versions 1 to 10 (213 bytes), which
 * is more than a join link needs.
 */

/** Per version: codewords in all, error correction codewords per block, blocks. For level M. */
// prettier-ignore
const VERSIONS: readonly [total: number, ecc: number, blocks: number][] = [
  [26, 10, 1], [44, 16, 1], [70, 26, 1], [100, 18, 2], [134, 24, 2],
  [172, 16, 4], [196, 18, 4], [242, 22, 4], [292, 22, 5], [346, 26, 5],
];
// prettier-ignore
const ALIGNMENT: readonly (readonly number[])[] = [
  [], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34],
  [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50],
];

export type Modules = readonly (readonly boolean[])[];

interface Grid {
  size: number;
  dark: boolean[][];
  /** Modules that carry no data: patterns, format, version. */
  fixed: boolean[][];
}

/** Throws if the text is longer than 213 bytes. */
export function qrCode(text: string): Modules {
  const data = new TextEncoder().encode(text);
  const version = VERSIONS.findIndex((_, v) => data.length <= capacity(v + 1)) + 1;
  if (version === 0)
    throw new RangeError(`${data.length} bytes do not fit a QR code of version 10`);
  const words = interleave(padded(data, version), version);
  const masked = MASKS.map((_, mask) => draw(words, version, mask));
  const best = masked.reduce((a, b) => (penalty(b) < penalty(a) ? b : a));
  return best.dark;
}

function spec(version: number): readonly [total: number, ecc: number, blocks: number] {
  return VERSIONS[version - 1] ?? [0, 0, 0];
}

function dataWords(version: number): number {
  const [total, ecc, blocks] = spec(version);
  return total - ecc * blocks;
}

function capacity(version: number): number {
  return dataWords(version) - (version < 10 ? 2 : 3);
}

function padded(data: Uint8Array, version: number): Uint8Array {
  const bits: number[] = [];
  const put = (value: number, length: number) => {
    for (let i = length - 1; i >= 0; i -= 1) bits.push((value >> i) & 1);
  };
  put(0b0100, 4);
  put(data.length, version < 10 ? 8 : 16);
  data.forEach((byte) => put(byte, 8));
  const words = new Uint8Array(dataWords(version));
  put(0, Math.min(4, words.length * 8 - bits.length));
  while (bits.length % 8 !== 0) bits.push(0);
  bits.forEach((bit, i) => {
    words[i >> 3] = (words[i >> 3] ?? 0) | (bit << (7 - (i & 7)));
  });
  for (let i = bits.length / 8, odd = true; i < words.length; i += 1, odd = !odd) {
    words[i] = odd ? 0xec : 0x11;
  }
  return words;
}

function interleave(data: Uint8Array, version: number): number[] {
  const [, ecc, blocks] = spec(version);
  const short = Math.floor(data.length / blocks);
  const longFrom = blocks - (data.length % blocks);
  const parts: Uint8Array[] = [];
  for (let b = 0, at = 0; b < blocks; b += 1) {
    const length = short + (b >= longFrom ? 1 : 0);
    parts.push(data.subarray(at, at + length));
    at += length;
  }
  const checks = parts.map((part) => remainder(part, ecc));
  const out: number[] = [];
  for (let i = 0; i <= short; i += 1) {
    for (const part of parts) if (i < part.length) out.push(part[i] ?? 0);
  }
  for (let i = 0; i < ecc; i += 1) for (const check of checks) out.push(check[i] ?? 0);
  return out;
}

/** Multiplication in GF(256) with the QR polynomial. */
function times(a: number, b: number): number {
  let product = 0;
  for (let i = 7; i >= 0; i -= 1) {
    product = (product << 1) ^ ((product >> 7) * 0x11d);
    product ^= ((b >> i) & 1) * a;
  }
  return product;
}

function generator(degree: number): number[] {
  let poly = [1];
  for (let i = 0, power = 1; i < degree; i += 1, power = times(power, 2)) {
    const next = [...poly, 0];
    poly.forEach((term, j) => {
      next[j + 1] = (next[j + 1] ?? 0) ^ times(term, power);
    });
    poly = next;
  }
  return poly.slice(1);
}

function remainder(data: Uint8Array, degree: number): number[] {
  const divisor = generator(degree);
  const rest: number[] = new Array<number>(degree).fill(0);
  for (const byte of data) {
    const factor = byte ^ (rest.shift() ?? 0);
    rest.push(0);
    divisor.forEach((term, i) => {
      rest[i] = (rest[i] ?? 0) ^ times(term, factor);
    });
  }
  return rest;
}

function draw(words: readonly number[], version: number, mask: number): Grid {
  const size = version * 4 + 17;
  const make = () => Array.from({ length: size }, () => new Array<boolean>(size).fill(false));
  const grid: Grid = { size, dark: make(), fixed: make() };
  drawPatterns(grid, version);
  drawFormat(grid, mask);
  if (version >= 7) drawVersion(grid, version);
  drawData(grid, words, mask);
  return grid;
}

function put(grid: Grid, x: number, y: number, dark: boolean): void {
  const [row, fixed] = [grid.dark[y], grid.fixed[y]];
  if (!row || !fixed || x < 0 || x >= grid.size) return;
  row[x] = dark;
  fixed[x] = true;
}

function drawPatterns(grid: Grid, version: number): void {
  const last = grid.size - 1;
  for (let i = 0; i < grid.size; i += 1) {
    put(grid, 6, i, i % 2 === 0);
    put(grid, i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [
    [3, 3],
    [last - 3, 3],
    [3, last - 3],
  ] as const) {
    for (let dy = -4; dy <= 4; dy += 1) {
      for (let dx = -4; dx <= 4; dx += 1) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        put(grid, cx + dx, cy + dy, ring !== 2 && ring !== 4);
      }
    }
  }
  const centres = ALIGNMENT[version - 1] ?? [];
  for (const cy of centres) {
    for (const cx of centres) {
      const corner = (cx === 6 || cx === last - 6) && (cy === 6 || cy === last - 6);
      if (corner && !(cx === last - 6 && cy === last - 6)) continue;
      for (let dy = -2; dy <= 2; dy += 1) {
        for (let dx = -2; dx <= 2; dx += 1) {
          put(grid, cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
        }
      }
    }
  }
}

function drawFormat(grid: Grid, mask: number): void {
  // Level M is 0 in the two upper bits.
  let rest = mask;
  for (let i = 0; i < 10; i += 1) rest = (rest << 1) ^ ((rest >> 9) * 0x537);
  const bits = ((mask << 10) | rest) ^ 0x5412;
  const bit = (i: number) => ((bits >> i) & 1) === 1;
  const size = grid.size;
  for (let i = 0; i < 6; i += 1) put(grid, 8, i, bit(i));
  put(grid, 8, 7, bit(6));
  put(grid, 8, 8, bit(7));
  put(grid, 7, 8, bit(8));
  for (let i = 9; i < 15; i += 1) put(grid, 14 - i, 8, bit(i));
  for (let i = 0; i < 8; i += 1) put(grid, size - 1 - i, 8, bit(i));
  for (let i = 8; i < 15; i += 1) put(grid, 8, size - 15 + i, bit(i));
  put(grid, 8, size - 8, true);
}

function drawVersion(grid: Grid, version: number): void {
  let rest = version;
  for (let i = 0; i < 12; i += 1) rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let i = 0; i < 18; i += 1) {
    const dark = ((bits >> i) & 1) === 1;
    const [a, b] = [grid.size - 11 + (i % 3), Math.floor(i / 3)];
    put(grid, a, b, dark);
    put(grid, b, a, dark);
  }
}

function drawData(grid: Grid, words: readonly number[], mask: number): void {
  let i = 0;
  for (let right = grid.size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    const upward = ((right + 1) & 2) === 0;
    for (let step = 0; step < grid.size; step += 1) {
      const y = upward ? grid.size - 1 - step : step;
      for (const x of [right, right - 1]) {
        const row = grid.dark[y];
        if (!row || grid.fixed[y]?.[x]) continue;
        const bit = i < words.length * 8 && (((words[i >> 3] ?? 0) >> (7 - (i & 7))) & 1) === 1;
        row[x] = bit !== isMasked(mask, x, y);
        i += 1;
      }
    }
  }
}

/** The eight masks of the standard, by column and row. */
const MASKS: readonly ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2,
  (_, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

function isMasked(mask: number, x: number, y: number): boolean {
  return MASKS[mask]?.(x, y) === 0;
}

/** How hard a grid is to read: long runs, blocks, look-alikes of the finder pattern, imbalance. */
function penalty(grid: Grid): number {
  const { size, dark } = grid;
  const at = (x: number, y: number) => dark[y]?.[x] ?? false;
  let score = 0;
  let black = 0;
  for (let a = 0; a < size; a += 1) {
    const row = Array.from({ length: size }, (_, b) => at(b, a));
    const column = Array.from({ length: size }, (_, b) => at(a, b));
    score += linePenalty(row) + linePenalty(column);
    black += row.filter(Boolean).length;
  }
  for (let y = 0; y + 1 < size; y += 1) {
    for (let x = 0; x + 1 < size; x += 1) {
      const one = at(x, y);
      if (one === at(x + 1, y) && one === at(x, y + 1) && one === at(x + 1, y + 1)) score += 3;
    }
  }
  return score + 10 * Math.floor(Math.abs((20 * black) / (size * size) - 10));
}

function linePenalty(line: readonly boolean[]): number {
  const text = line.map((dark) => (dark ? "1" : "0")).join("");
  let score = 0;
  for (const run of text.match(/0{5,}|1{5,}/g) ?? []) score += run.length - 2;
  for (let i = 0; i + 11 <= text.length; i += 1) {
    const piece = text.slice(i, i + 11);
    if (piece === "10111010000" || piece === "00001011101") score += 40;
  }
  return score;
}
