/** Pieces that engine Workers need of blobs. What this browser keeps is read. Of the rest the coordinator is told: what it
 * says to take from a device to which there is a way comes from there, and all else the Worker streams at once. So nobody
 * waits for ways that are still opening; the next range finds more of them. */

import type { Pieces, Seek, Sought } from "../crews.js";
import type { StoredBlob } from "../failure.js";
import type { Holdings } from "./holdings.js";

/** The coordinator answers in this time, or the Worker does not wait for it. */
const ANSWER_MS = 150;
/** Its answer may come in two words, one for itself and one for each device. */
const REST_MS = 2;
/** Pieces come from other devices so often, or the Worker streams them. */
const PATIENCE_MS = 250;
/** Needs are said so often: each costs the coordinator a look, and a node that says more is not heard (`CHANGE_PRICE`). */
const SAY_EVERY_MS = 60;
/** What is kept is told after this long, if the next need does not tell it. */
const TELL_MS = 300;

export interface Exchange {
  /** These pieces are needed, and these are here. Whether some other device is near enough to give any. */
  want(blob: StoredBlob, hashes: Uint8Array, needs: number[], has: Iterable<number>): boolean;
  /** These are here, and none is needed now. */
  have(blob: StoredBlob, has: Iterable<number>): void;
  /** Those that are to come from other devices. */
  awaited(blob: StoredBlob): Uint32Array;
}

class Need implements Seek {
  readonly lacks: Set<number>;
  /** The Worker knows which it streams; the others come from devices. */
  isTold = false;
  isOver = false;
  /** When a piece last came from a device. */
  came = performance.now();
  sign: () => void = () => undefined;

  constructor(
    readonly wanted: Pieces,
    private readonly answer: Sought,
    private readonly seeks: Seeks,
  ) {
    this.lacks = new Set(numbers(wanted));
  }

  found(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.came = performance.now();
    if (!this.isOver && this.lacks.delete(piece)) this.answer.found(piece, bytes);
  }

  stream(pieces: Iterable<number>): void {
    const all = [...pieces].filter((piece) => this.lacks.delete(piece));
    if (!this.isOver && all.length > 0) this.answer.stream(all);
  }

  keep(piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.seeks.keep(this.wanted, piece, bytes);
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.sign();
    this.seeks.over(this);
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

  begin(wanted: Pieces, answer: Sought): Seek {
    const { hash } = wanted.blob;
    const need = new Need(wanted, answer, this);
    this.needs.set(hash, (this.needs.get(hash) ?? new Set()).add(need));
    // Whatever fails here, the Worker can get all from the coordinator.
    void this.run(need)
      .catch((error: unknown) => console.warn(`pieces of blob ${hash}: ${String(error)}`))
      .finally(() => need.stream([...need.lacks]));
    return need;
  }

  /** Keeps a piece that has its hash. Of what is kept others hear when it is written. */
  keep({ blob, hashes }: Pieces, piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    const kept = this.holdings.put(blob, piece, bytes, hashes.slice(piece * 32, piece * 32 + 32));
    void kept.then(() => this.tellSoon(blob));
  }

  /** Whether pieces of it are needed now. */
  isFor(hash: string): boolean {
    return this.needs.has(hash);
  }

  /** The coordinator says that this piece comes from itself: the Worker that needs it gets it, if any still does. */
  toFetch({ hash }: StoredBlob, piece: number): void {
    for (const need of this.needs.get(hash) ?? []) {
      need.sign();
      if (need.isTold) need.stream([piece]);
    }
  }

  /** Others were asked for pieces: perhaps for some of these. */
  asked(): void {
    for (const need of [...this.needs.values()].flatMap((needs) => [...needs])) {
      if (!need.isTold && this.exchange.awaited(need.wanted.blob).length > 0) need.sign();
    }
  }

  /** A piece came from another device, and is right. */
  came({ hash }: StoredBlob, piece: number, bytes: Uint8Array<ArrayBuffer>): void {
    const needs = [...(this.needs.get(hash) ?? [])];
    const [some] = needs;
    // Its memory is given away twice.
    if (some) this.keep(some.wanted, piece, bytes.slice());
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

  over(need: Need): void {
    const { blob } = need.wanted;
    const needs = this.needs.get(blob.hash);
    needs?.delete(need);
    if (needs?.size === 0) this.needs.delete(blob.hash);
    this.tellSoon(blob);
  }

  private async run(need: Need): Promise<void> {
    await this.holdings.known;
    const kept = this.holdings.pieces(need.wanted.blob.hash);
    const here = [...need.lacks].filter((piece) => kept.has(piece));
    const rest = [...need.lacks].filter((piece) => !kept.has(piece));
    await Promise.all([this.read(need, here), this.ask(need, rest)]);
  }

  private async read(need: Need, pieces: number[]): Promise<void> {
    const read = async (piece: number) => {
      const bytes = await this.holdings.read(need.wanted.blob, piece);
      if (bytes) need.found(piece, bytes);
      else need.stream([piece]);
    };
    await Promise.all(pieces.map(read));
  }

  /** Has all of them come, from near devices or else from the coordinator. */
  private async ask(need: Need, rest: number[]): Promise<void> {
    const { blob, hashes } = need.wanted;
    const now = performance.now();
    if (rest.length === 0) return;
    if (now - this.said < SAY_EVERY_MS) return need.stream(rest);
    this.said = now;
    const signed = new Promise<void>((sign) => (need.sign = sign));
    if (!this.exchange.want(blob, hashes, rest, this.holdings.pieces(blob.hash))) return need.stream(rest);
    await Promise.race([signed.then(() => pause(REST_MS)), pause(ANSWER_MS)]);
    const asked = new Set(this.exchange.awaited(blob));
    need.stream(rest.filter((piece) => !asked.has(piece)));
    need.isTold = true;
    need.came = performance.now();
    while (rest.some((piece) => need.lacks.has(piece)) && !need.isOver) {
      const left = need.came + PATIENCE_MS - performance.now();
      if (left <= 0) return need.stream(rest);
      await pause(left);
    }
  }

  private tellSoon(blob: StoredBlob): void {
    clearTimeout(this.telling.get(blob.hash));
    const tell = () => {
      this.telling.delete(blob.hash);
      // Who needs more of it tells, now or in the end.
      if (!this.isFor(blob.hash)) this.exchange.have(blob, this.holdings.pieces(blob.hash));
    };
    this.telling.set(blob.hash, setTimeout(tell, TELL_MS));
  }
}

/** Of pieces that are needed, the numbers. */
function numbers({ first, end }: Pieces): number[] {
  return Array.from({ length: end - first }, (_, at) => first + at);
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
