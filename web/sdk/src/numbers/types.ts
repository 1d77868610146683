/** What may be given for what a kernel reads, and what comes back. */

import type { ArrayOf, OutType, ResultArray } from "../arrays.js";
import type { Bytes } from "../blobs.js";

/** Typed arrays a kernel can read. */
export type TypedNumbers = Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;
/** Lists of lists of numbers, all of one shape. */
export type NestedNumbers = readonly (readonly number[] | NestedNumbers)[];
/** Bytes that are stored already. */
export interface Stored {
  blob: string;
}

export interface MapInputOptions {
  /** Numbers; with `raw`, bytes of any kind. */
  data: TypedNumbers | readonly number[] | NestedNumbers | Bytes | Stored;
  /** The axes of a typed array, the last one running fastest. The result then comes with its shape. */
  shape?: readonly number[];
  /** These bytes are the array as the GPU reads it: nothing is checked or converted. */
  raw?: boolean;
  /** What stored bytes are: `f32`, `i32`, `u32`, or the kernel's element. The job is refused if the kernel reads something else. */
  type?: string;
  /** Every unit gets all of it: tables, weights, the other matrix. */
  whole?: boolean;
  /** Elements for each item; 1 without it. */
  perItem?: number;
  /** How many elements away from its own an item may look; found in the kernel without it. */
  overlap?: number;
}

/** One input of a map. */
export type MapInput = TypedNumbers | readonly number[] | NestedNumbers | Stored | MapInputOptions;

/** A typed array and its axes. */
export interface Shaped<A> {
  data: A;
  shape: number[];
}

/** A result of the shape of nested lists. */
export type NumberList = (number | NumberList)[];

/** As the first split input was given: nested lists give nested lists, a shape gives a shape, and the rest a typed array. */
export type MapResult<O> = [InputOf<O>] extends [never] ? ArrayFor<O> : FormOf<InputOf<O>, ArrayFor<O>>;

type ArrayFor<O> = O extends { out: infer T extends OutType } ? ArrayOf[T] : ResultArray;
type InputOf<O> = O extends { inputs: readonly (infer I)[] } ? I : O extends { input: infer I } ? I : never;
type FormOf<I, A> = I extends { shape: readonly number[] }
  ? Shaped<A>
  : (I extends { data: infer D } ? D : I) extends NestedNumbers
    ? NumberList
    : A;
