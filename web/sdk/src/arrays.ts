/** Results as typed arrays, by the WGSL type of the output. */

import { ShoalError } from "./http.js";
import type { Job } from "./types.js";

export interface ArrayOf {
  f32: Float32Array<ArrayBuffer>;
  i32: Int32Array<ArrayBuffer>;
  u32: Uint32Array<ArrayBuffer>;
  /** Half floats as their bits: `Float16Array` is not everywhere yet. */
  f16: Uint16Array<ArrayBuffer>;
}

export type OutType = keyof ArrayOf;
export type ResultArray = ArrayOf[OutType];

const MAKE: { [T in OutType]: (bytes: ArrayBuffer) => ArrayOf[T] } = {
  f32: (bytes) => new Float32Array(bytes),
  i32: (bytes) => new Int32Array(bytes),
  u32: (bytes) => new Uint32Array(bytes),
  f16: (bytes) => new Uint16Array(bytes),
};

export function typed<T extends OutType>(bytes: ArrayBuffer, type: T): ArrayOf[T] {
  return MAKE[type](bytes);
}

/** The output's type; fails if the caller expected another. */
export function outType(job: Job, expected?: OutType): OutType {
  const said = job.output?.type ?? expected ?? "f32";
  if (!(said in MAKE)) {
    throw new ShoalError(0, "unknown_type", `the kernel's output has type ${said}, for which there is no typed array: submit the job and fetch its bytes with result(id)`);
  }
  if (expected && said !== expected) {
    throw new ShoalError(0, "wrong_type", `the kernel's output has type ${said}, not ${expected} as requested`);
  }
  return said as OutType;
}
