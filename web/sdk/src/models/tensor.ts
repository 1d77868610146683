/** Tensors as JavaScript has them, in pages and in Workers. */

/** Numbers of a tensor. `bool` is a `Uint8Array`, `float16` the bits in a `Uint16Array`. */
export type TensorData =
  | Float32Array
  | Float64Array
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array;

export interface Tensor {
  data: TensorData;
  shape: readonly number[];
}
