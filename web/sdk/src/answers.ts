import type { FailedInput } from "./types.js";

/** What the runs of a program wrote, one answer for each item, in order. */
export class Answers implements Iterable<string> {
  private readonly decoder = new TextDecoder();

  constructor(
    /** All answers, one after the other. */
    readonly bytes: Uint8Array<ArrayBuffer>,
    /** Where each ends in `bytes`. */
    private readonly ends: BigUint64Array,
    /** The inputs on which the program failed. What it had written until then is its answer. */
    readonly failures: readonly FailedInput[] = [],
  ) {}

  get length(): number {
    return this.ends.length;
  }

  at(item: number): Uint8Array<ArrayBuffer> {
    if (item < 0 || item >= this.length) {
      throw new RangeError(`there is no answer ${item}: the job has ${this.length}`);
    }
    const start = item === 0 ? 0 : Number(this.ends[item - 1]);
    return this.bytes.subarray(start, Number(this.ends[item]));
  }

  text(item: number): string {
    return this.decoder.decode(this.at(item));
  }

  *[Symbol.iterator](): Iterator<string> {
    for (let item = 0; item < this.length; item++) yield this.text(item);
  }
}
