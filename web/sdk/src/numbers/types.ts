/** What a kernel reads, and what may be given for it. */

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

/** The same as a job's request says it. */
export interface MapRequestInput {
  blob: string;
  whole?: boolean;
  perItem?: number;
  overlap?: number;
  /** What the bytes are: `f32`, `i32`, `u32`, or the kernel's element. The job is refused if the kernel reads something else. */
  type?: string;
}

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

/** An array of a kernel, as the coordinator's check found it. */
export interface KernelArray {
  /** Its variable. */
  name: string;
  /** The element as WGSL writes it: `f32`, `vec2<f32>`, a struct's name. */
  type: string;
  /** What the element is made of; `mixed` if of several kinds. */
  scalar: string;
  /** Numbers from one element to the next, padding included: 4 for a `vec3<f32>`. */
  lanes: number;
  stride: number;
}

/** What a map kernel reads and writes. */
export interface KernelInfo {
  entry: string;
  inputs: KernelArray[];
  output: KernelArray;
  workgroup: [number, number, number];
  needs: { workgroupInvocations: number; workgroupBytes: number; storageBuffers: number };
}
