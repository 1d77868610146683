/** Pieces that engine Workers need of blobs. What this browser keeps is handed on at once. Of the rest the coordinator is
 * told: what it says to take from another device comes from there, and all else the Worker streams, without waiting for
 * ways that are still opening. So nobody gets anything later than without other devices; the next range finds more of
 * them. */

import type { Pieces, Seek, Sought } from "../crews.js";
import type { StoredBlob } from "../failure.js";
import { hexOf } from "../hashing.js";
import { PIECE } from "../source.js";
import type { Holdings, Use } from "./holdings.js";

/** The coordinator answers in this time, or the Worker does not wait for it. */
const ANSWER_MS = 150;
/** Its answer may come in two words, one for itself and one for each device. */
const REST_MS = 2;
/** Pieces come from other devices so often, or the Worker streams them. */
const PATIENCE_MS = 250;
/** Needs are said so often: each costs the coordinator a look, and a node that says more is not heard (`CHANGE_PRICE`). */
const SAY_EVERY_MS = 60;
/** What was kept is told after this long, if the next need does not tell it. */
const TELL_MS = 300;
/** Pieces read before other things get their turn. */
const AT_A_TIME = 8;

export interface Exchange {
  hashes(blob: StoredBlob): Promise<Uint8Array>;
  /** These pieces are needed, and these are here. */
  want(blob: StoredBlob, hashes: Uint8Array, needs: Uint32Array, has: Uint32Array): void;
  /** These are here, and none is needed now. */
  have(blob: StoredBlob, has: Uint32Array): void;
  /** Those that are to come from other devices. */
  awaited(blob: StoredBlob): Uint32Array;
}

class Need implements Seek {
  readonly lacks: Set<number>;
  /** The Worker knows which it streams; the others come from devices. */
  isTold = false;
  isOver = false;
  use: Use | undefined;
  hashes: Uint8Array | undefined;
  /** What is kept was looked at, and what comes can be kept. */
  ready: Promise<boolean> = Promise.resolve(false);
  /** When a piece last came. */
  came = performance.now();
  sign: () => void = () => undefined;

  constructor(
    readonly blob: StoredBlob,
    { first, end }: Pieces,
    private readonly answer: Sought | undefined,
    private readonly over: (need: Need) => void,
  ) {
    this.lacks = new Set(Array.from({ length: end - first }, (_, at) => first + at));
  }

  found(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.came = performance.now();
    if (!this.isOver && this.lacks.delete(piece)) this.answer?.found(piece, bytes);
  }

  stream(pieces: Iterable<number>): void {
    const all = [...pieces].filter((piece) => this.lacks.delete(piece));
    if (!this.isOver && all.length > 0) this.answer?.stream(all);
  }

  keep(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    void this.ready.then((isReady) => {
      const hash = this.hashes?.subarray(piece * 32, piece * 32 + 32);
      if (isReady && hash) this.use?.put(piece, bytes, hash);
    });
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.sign();
    // What it gave is kept first.
    void this.ready.then(() => this.use?.written()).then(() => this.over(this));
  }
}

export class Seeks {
  private readonly needs = new Map<string, Set<Need>>();
  private readonly telling = new Map<string, ReturnType<typeof setTimeout>>();
  private said = -Infinity;

  constructor(
    private readonly holdings: Holdings,
    private readonly exchange: Exchange,
  ) {}

  begin(pieces: Pieces, answer: Sought): Seek {
    const need = this.add(pieces, answer);
    // Whatever fails here, the Worker can get all from the coordinator.
    void this.run(need)
      .catch((error: unknown) => console.warn(`pieces of blob ${need.blob.hash}: ${String(error)}`))
      .finally(() => need.stream([...need.lacks]));
    return need;
  }

  /** The Worker streams all of them already; what it gives is kept. */
  async hold(pieces: Pieces): Promise<Seek> {
    const need = this.add(pieces, undefined);
    need.lacks.clear();
    await need.ready;
    return need;
  }

  /** Whether pieces of it are needed now. */
  isFor(hash: string): boolean {
    return this.needs.has(hash);
  }

  /** The coordinator says that this piece comes from itself. Whether a Worker sees to it. */
  toFetch({ hash }: StoredBlob, piece: number): boolean {
    const needs = this.needs.get(hash);
    for (const need of needs ?? []) {
      need.sign();
      if (need.isTold) need.stream([piece]);
    }
    return needs !== undefined;
  }

  /** Others were asked for pieces: perhaps for some of these. */
  asked(): void {
    for (const needs of this.needs.values()) {
      for (const need of needs) {
        if (!need.isTold && this.exchange.awaited(need.blob).length > 0) need.sign();
      }
    }
  }

  /** A piece came from another device, and is right. */
  came({ hash }: StoredBlob, piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    const needs = [...(this.needs.get(hash) ?? [])];
    // It is written later, and its memory is given away now.
    needs.find(({ use }) => use)?.keep(piece, bytes.slice());
    const waiting = needs.filter(({ lacks }) => lacks.has(piece));
    waiting.forEach((need, at) => need.found(piece, at === waiting.length - 1 ? bytes : bytes.slice()));
  }

  /** It cannot be had from others. */
  failed({ hash }: StoredBlob): void {
    for (const need of this.needs.get(hash) ?? []) {
      need.sign();
      if (need.isTold) need.stream([...need.lacks]);
    }
  }

  private add(pieces: Pieces, answer: Sought | undefined): Need {
    const { blob } = pieces;
    const need = new Need(blob, pieces, answer, (need) => this.over(need));
    this.needs.set(blob.hash, (this.needs.get(blob.hash) ?? new Set()).add(need));
    need.ready = this.prepare(need, pieces).catch((error: unknown) => {
      console.warn(`pieces of blob ${blob.hash} are not kept: ${String(error)}`);
      return false;
    });
    return need;
  }

  private async run(need: Need): Promise<void> {
    const { blob } = need;
    if (!(await need.ready)) return;
    const { use, hashes } = need;
    if (!use || !hashes || need.isOver || need.lacks.size === 0) return;
    const now = performance.now();
    if (now - this.said < SAY_EVERY_MS) return;
    this.said = now;
    clearTimeout(this.telling.get(blob.hash));
    const signed = new Promise<void>((sign) => (need.sign = sign));
    this.exchange.want(blob, hashes, Uint32Array.from(need.lacks), rightOnes(use, hashes));
    await Promise.race([signed.then(() => pause(REST_MS)), pause(ANSWER_MS)]);
    const asked = new Set(this.exchange.awaited(blob));
    need.stream([...need.lacks].filter((piece) => !asked.has(piece)));
    need.isTold = true;
    while (need.lacks.size > 0 && !need.isOver) {
      const left = need.came + PATIENCE_MS - performance.now();
      if (left <= 0) return;
      await pause(left);
    }
  }

  /** Hands on what is kept; whether the rest can be kept when it comes. */
  private async prepare(need: Need, { blob, first, end }: Pieces): Promise<boolean> {
    const use = await this.holdings.use(blob);
    need.use = use;
    if (!use) return false;
    const wanted = Array.from({ length: end - first }, (_, at) => first + at);
    for (const [at, piece] of wanted.entries()) {
      const bytes = need.lacks.has(piece) && use.held.read(piece);
      if (bytes) need.found(piece, bytes);
      if (at % AT_A_TIME === AT_A_TIME - 1) await pause(0);
    }
    const missing = wanted.filter((piece) => !use.held.has(piece)).length;
    if (missing === 0) return false;
    need.hashes = await this.exchange.hashes(blob);
    return use.claim(missing * PIECE);
  }

  private over(need: Need): void {
    const { blob, use } = need;
    const needs = this.needs.get(blob.hash);
    needs?.delete(need);
    use?.end();
    if (needs?.size !== 0) return;
    this.needs.delete(blob.hash);
    if (!need.hashes) return;
    clearTimeout(this.telling.get(blob.hash));
    const tell = () => {
      this.telling.delete(blob.hash);
      // Closed so soon, it is becoming a whole one.
      if (use?.held.isOpen && !this.needs.has(blob.hash)) this.exchange.have(blob, use.held.pieces);
    };
    this.telling.set(blob.hash, setTimeout(tell, TELL_MS));
  }
}

/** What is kept, as far as it is what the coordinator says. */
function rightOnes({ held }: Use, hashes: Uint8Array): Uint32Array {
  return held.pieces.filter((piece) => held.hasAs(piece, hexOf(hashes.subarray(piece * 32, piece * 32 + 32))));
}

function pause(millis: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(() => resolve(undefined), millis));
}
