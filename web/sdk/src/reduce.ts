/** Outputs of a map brought together: jobs fold blocks of items into one, and what they leave is folded again. */

import { ShoalError } from "./http.js";
import type { MapOptions } from "./options.js";
import type { Job } from "./types.js";

/** A function `combine` of two elements of the output, the earlier one first, in WGSL. */
export interface CombineCode {
  wgsl: string;
}

export interface ReduceOptions extends Omit<MapOptions, "out"> {
  reduce: "sum" | "min" | "max" | "mean" | CombineCode;
}

/** Sums of whole numbers are `bigint`s, because they have 64 bits. */
export type ReducedNumber = number | bigint;
/** One number, or one for each column if an item has several. */
export type ReducedNumbers = ReducedNumber | ReducedNumber[];

type Reader = (bytes: ArrayBuffer) => ReducedNumber[];

const READ: Readonly<Record<string, Reader>> = {
  f32: (bytes) => [...new Float32Array(bytes)],
  i32: (bytes) => [...new Int32Array(bytes)],
  u32: (bytes) => [...new Uint32Array(bytes)],
  i64: (bytes) => [...new BigInt64Array(bytes)],
  u64: (bytes) => [...new BigUint64Array(bytes)],
};

/** How a job's result is folded further, and read in the end. */
export function reducedOf(job: Job): { items: number; columns: number; combine: string; copy: string; read: Reader } {
  const read = READ[job.output?.type ?? ""];
  if (!job.reduced || !read) throw new ShoalError(0, "not_reduced", `job ${job.id} has no reduced result`);
  return { ...job.reduced, read };
}

/** A `vec3` has a fourth number in memory, which is none. */
export function withoutGaps(numbers: ReducedNumber[], { type }: { type: string }): ReducedNumber[] {
  return type.startsWith("vec3") ? numbers.filter((_, at) => at % 4 !== 3) : numbers;
}

/** The last block, as the caller wants it. */
export function told(numbers: ReducedNumber[], how: ReduceOptions["reduce"], items: number): ReducedNumbers {
  const all = how === "mean" ? numbers.map((sum) => Number(sum) / items) : numbers;
  return all.length === 1 ? (all[0] as ReducedNumber) : all;
}
