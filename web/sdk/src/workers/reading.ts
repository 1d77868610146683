/** A large blob as one reads it who goes from its beginning to its end: in whole pieces, so that each is checked and kept,
 * and never all of it at a time. */

import { PIECE } from "./source.js";

/** Read ahead: large enough that few requests are made, small beside what a tab lends. */
const AHEAD = 16 * PIECE;

type Bytes = Uint8Array<ArrayBuffer>;

export class Reading {
  /** Bytes that are here, from `at` on. */
  private at = 0;
  private here: Bytes = new Uint8Array(0);

  constructor(
    private readonly size: number,
    private readonly fetch: (from: number, to: number) => Promise<Bytes>,
  ) {}

  /** Some bytes; valid until the next call. */
  async range(from: number, to: number): Promise<Bytes> {
    const end = this.at + this.here.byteLength;
    if (from < this.at || to > end) await this.move(from, to, end);
    return this.here.subarray(from - this.at, to - this.at);
  }

  /** What is here of the pieces that are wanted is not fetched again. */
  private async move(from: number, to: number, end: number): Promise<void> {
    const start = Math.floor(from / PIECE) * PIECE;
    const stop = Math.min(this.size, Math.ceil(Math.max(to, start + AHEAD) / PIECE) * PIECE);
    const kept = start >= this.at && start < end ? this.here.subarray(start - this.at) : new Uint8Array(0);
    const begin = start + kept.byteLength;
    const fetched = begin < stop ? await this.fetch(begin, stop) : new Uint8Array(0);
    if (kept.byteLength === 0) {
      this.here = fetched;
    } else {
      const both = new Uint8Array(kept.byteLength + fetched.byteLength);
      both.set(kept);
      both.set(fetched, kept.byteLength);
      this.here = both;
    }
    this.at = start;
  }
}
