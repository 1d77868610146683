/** A map's result in the form of its input. */

import type { ResultArray } from "../arrays.js";
import type { Prepared } from "./input.js";
import { numbersIn, unpadded } from "./padding.js";
import type { KernelArray } from "../types.js";
import type { NumberList, Shaped } from "./types.js";

/** `items` of the job; `perItem` elements of output each. The first input that is split decides the form, as in `shoal map`. */
export function formed(
  flat: ResultArray,
  inputs: readonly Prepared[],
  output: KernelArray,
  items: number,
  perItem: number,
): ResultArray | NumberList | Shaped<ResultArray> {
  const first = inputs.find((input) => !input.whole);
  if (!first?.shape || first.form === "flat") return flat;
  const data = unpadded(flat, output);
  const shape = itemShape(first.shape, items) ?? [items];
  const each = numbersIn(output) * perItem;
  if (each > 1) shape.push(each);
  if (product(shape) !== data.length) return flat;
  return first.form === "nested" ? nested(data, shape) : { data, shape };
}

/** The input's axes without the last ones, which one item reads; nothing if an item is cut out of the middle of one. */
export function itemShape(shape: readonly number[], items: number): number[] | undefined {
  for (let axes = shape.length; axes >= 0; axes -= 1) {
    const part = shape.slice(0, axes);
    const count = product(part);
    if (count === items) return part;
    if (count < items) return undefined;
  }
  return undefined;
}

function nested(data: ResultArray, shape: readonly number[]): NumberList {
  let lists: NumberList = Array.from(data);
  for (let axis = shape.length - 1; axis > 0; axis -= 1) {
    const length = shape[axis] ?? 1;
    const rows: NumberList = [];
    for (let at = 0; at < lists.length; at += length) rows.push(lists.slice(at, at + length));
    lists = rows;
  }
  return lists;
}

function product(axes: readonly number[]): number {
  return axes.reduce((product, axis) => product * axis, 1);
}
