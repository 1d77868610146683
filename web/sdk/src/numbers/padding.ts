/** Vectors of three take the room of four in the GPU's memory. Lists and shaped arrays are without that gap. */

import { bad, newArray, type Scalar, type Typed } from "./lists.js";
import type { KernelArray } from "../types.js";

/** `vec3<T>` and matrices with columns of three. */
export function isPadded({ type }: KernelArray): boolean {
  return /^(vec3|mat[234]x3)</.test(type);
}

/** Numbers in an element, gaps not counted. */
export function numbersIn(element: KernelArray): number {
  return isPadded(element) ? (element.lanes / 4) * 3 : element.lanes;
}

/** Whether the last axes of a shape make whole elements. */
export function rowsFit(shape: readonly number[], element: KernelArray, what: string, wanted: string): void {
  const each = numbersIn(element);
  if (shape.length === 1 && isPadded(element)) {
    throw bad(`${what} is flat, but ${wanted}: pass each element as its own list, as in [[x, y, z], …]`);
  }
  let numbers = 1;
  for (let axis = shape.length - 1; axis >= 0 && numbers < each; axis -= 1) numbers *= shape[axis] ?? 1;
  if (numbers % each === 0) return;
  throw bad(`${what} has the shape [${shape.join(", ")}], but ${wanted}: rows of ${numbers} do not make elements of ${each} numbers`);
}

/** With the gaps that the kernel's array has. */
export function padded(numbers: Typed, element: KernelArray): Typed {
  if (!isPadded(element)) return numbers;
  const out = newArray(element.scalar as Scalar, (numbers.length / 3) * 4);
  for (let i = 0; i < numbers.length; i += 1) out[i + Math.floor(i / 3)] = numbers[i] ?? 0;
  return out;
}

/** Without them. */
export function unpadded<A extends Typed | Uint16Array<ArrayBuffer>>(numbers: A, element: KernelArray): A {
  if (!isPadded(element)) return numbers;
  return numbers.filter((_, at) => at % 4 !== 3) as A;
}
