/** The numbers that kernels take. */

import { readNpy } from "@shoal/sdk";

export type NumberArray =
  Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

/** The numbers of a .npy file; throws if no kernel could take them. */
export function kernelNumbers(file: ArrayBuffer): NumberArray {
  const npy = readNpy(file);
  switch (npy.type) {
    case "f32":
    case "i32":
    case "u32":
      return npy.data;
    case "f64":
    case "i64":
    case "u64":
      throw new Error(`the array's numbers are ${npy.type}; a kernel takes float32, int32 or uint32`);
  }
}
