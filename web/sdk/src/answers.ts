import { ShoalError } from "./http.js";
import type { FailedInput, LeftByRun } from "./types.js";

/** A file that a run left in `/out`. */
export interface LeftContent {
  /** With `/` between folders. The device that ran the program says it: use it as a label, not as a path on your disk. */
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

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
    /** What other runs left beside their answers: the names of their files, and the end of their stderr. */
    readonly left: readonly LeftByRun[] = [],
    private readonly fetchFiles?: (item: number) => Promise<Uint8Array<ArrayBuffer>>,
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

  /** The files that the run of an item left in `/out`, fetched when asked for. */
  async files(item: number): Promise<LeftContent[]> {
    const any = this.left.some((run) => run.item === item && run.files.length > 0);
    if (!any || !this.fetchFiles) return [];
    return unpackFiles(await this.fetchFiles(item));
  }

  *[Symbol.iterator](): Iterator<string> {
    for (let item = 0; item < this.length; item++) yield this.text(item);
  }
}

/** For each file the lengths of its path and its own, then both. */
export function unpackFiles(packed: Uint8Array<ArrayBuffer>): LeftContent[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const files: LeftContent[] = [];
  for (let at = 0; at < packed.byteLength; ) {
    const start = at + 8;
    const from = start <= packed.byteLength ? start + view.getUint32(at, true) : Infinity;
    const end = from <= packed.byteLength ? from + view.getUint32(at + 4, true) : Infinity;
    if (end > packed.byteLength) throw new ShoalError(0, "bad_answer", "what the run left are no files");
    files.push({ path: new TextDecoder().decode(packed.subarray(start, from)), bytes: packed.subarray(from, end) });
    at = end;
  }
  return files;
}
