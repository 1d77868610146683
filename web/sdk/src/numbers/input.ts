/** What is sent for an input of a kernel: checked against what the kernel reads, and converted where that is safe. */

import { ShoalError } from "../http.js";
import type { Bytes, Source } from "../blobs.js";
import { bad, fromList, type Scalar, type Typed } from "./lists.js";
import { isPadded, padded, rowsFit } from "./padding.js";
import type { KernelArray, KernelInfo, MapRequestInput } from "../types.js";
import type { MapInput, MapInputOptions } from "./types.js";

interface Given {
  input?: MapInput;
  inputs?: readonly MapInput[];
}

/** An input ready to be sent. */
export interface Prepared {
  source: Source;
  /** What the coordinator holds against the kernel. */
  type?: string;
  /** How the result is given back. */
  form: "flat" | "nested" | "shaped";
  shape?: readonly number[];
  whole?: boolean;
  perItem?: number;
  overlap?: number;
}

const TYPES: Readonly<Record<string, string>> = {
  Float32Array: "f32",
  Int32Array: "i32",
  Uint32Array: "u32",
};
const ARRAYS = { f32: "Float32Array", i32: "Int32Array", u32: "Uint32Array" } as const;
/** What holds bytes and does not say of what. */
const HOLDERS: readonly string[] = ["ArrayBuffer", "DataView", "Blob", "File"];

/** All inputs of a map, in the order of the kernel's bindings. */
export function prepareAll({ input, inputs }: Given, kernel: KernelInfo): Prepared[] {
  const given = inputs ?? (input === undefined ? [] : [input]);
  if (given.length !== kernel.inputs.length) {
    const reads = kernel.inputs.map(({ name, type }) => `${name}: array<${type}>`).join(", ");
    const message = `the kernel reads ${kernel.inputs.length} arrays (${reads}), but you passed ${given.length}: pass one input for each array`;
    throw new ShoalError(0, "input_count", message);
  }
  return kernel.inputs.map((element, at) => prepare(given[at] as MapInput, element, inputs ? `inputs[${at}]` : "input"));
}

/** What the job's request says of it. */
export function requestInput({ type, whole, perItem, overlap }: Prepared, blob: string): MapRequestInput {
  return {
    blob,
    ...(type === undefined ? {} : { type }),
    ...(whole === undefined ? {} : { whole }),
    ...(perItem === undefined ? {} : { perItem }),
    ...(overlap === undefined ? {} : { overlap }),
  };
}

/** `what` is how the caller wrote it: `input` or `inputs[1]`. */
function prepare(given: MapInput, element: KernelArray, what: string): Prepared {
  const options = isOptions(given) ? given : { data: given };
  const { data, shape, raw, type, ...split } = options;
  if (raw || isStored(data)) {
    const source = isStored(data) ? data : asBytes(data, what);
    return { ...split, ...(type === undefined ? {} : { type }), source, form: "flat" };
  }
  const wanted = `the kernel's "${element.name}" is array<${element.type}>`;
  const scalar = plainScalar(element, what, wanted);
  if (Array.isArray(data)) {
    if (shape) throw bad(`${what} is a list, which has its own shape: leave "shape" out`);
    return { ...split, type: scalar, ...listed(data, scalar, element, what, wanted) };
  }
  const numbers = typed(data, scalar, what, wanted);
  if (!shape) {
    checkCount(numbers.length, element, split.perItem ?? 1, what, wanted);
    return { ...split, type: scalar, source: numbers, form: "flat" };
  }
  checkShape(shape, numbers.length, what);
  rowsFit(shape, element, what, wanted);
  return { ...split, type: scalar, source: padded(numbers, element), form: "shaped", shape };
}

function listed(data: readonly unknown[], scalar: Scalar, element: KernelArray, what: string, wanted: string) {
  const { numbers, shape } = fromList(data, scalar, what, wanted);
  rowsFit(shape, element, what, wanted);
  const form: Prepared["form"] = shape.length > 1 ? "nested" : "flat";
  return { source: padded(numbers, element), form, shape };
}

function isOptions(given: MapInput): given is MapInputOptions {
  return typeof given === "object" && given !== null && !Array.isArray(given) && "data" in given;
}

function isStored(data: unknown): data is { blob: string } {
  return typeof data === "object" && data !== null && "blob" in data && typeof data.blob === "string";
}

/** A struct of several kinds of number has no list or typed array that would be it. */
function plainScalar({ scalar }: KernelArray, what: string, wanted: string): Scalar {
  if (scalar === "f32" || scalar === "i32" || scalar === "u32") return scalar;
  throw new ShoalError(0, "wrong_type", `${wanted}, which mixes kinds of numbers: pass ${what} as bytes, { data, raw: true }`);
}

function typed(data: unknown, scalar: Scalar, what: string, wanted: string): Typed {
  const tag = tagOf(data);
  if (TYPES[tag] === scalar) return data as Typed;
  const array = ARRAYS[scalar];
  const bytes = "{ data, raw: true } if these bytes are already in the kernel's layout";
  const advice = () => {
    if (HOLDERS.includes(tag)) return `pass ${article(array)}, or ${bytes}`;
    if (tag.startsWith("Big")) return `convert it with ${array}.from(values, Number)`;
    if (tag.startsWith("Uint8")) return `convert it with ${array}.from(values), or pass ${bytes}`;
    if (ArrayBuffer.isView(data)) return `convert it with ${array}.from(values)`;
    return `pass ${article(array)} or a list of numbers`;
  };
  throw new ShoalError(0, "wrong_type", `${what} is ${article(tag)}, but ${wanted}: ${advice()}`);
}

function asBytes(data: MapInputOptions["data"], what: string): Bytes {
  const tag = tagOf(data);
  if (ArrayBuffer.isView(data) || HOLDERS.includes(tag)) return data as Bytes;
  throw bad(`${what} is ${article(tag)}: raw bytes must be an ArrayBuffer, a view of one, or a Blob`);
}

/** `Float32Array`, `Blob`, `Null`: also of objects from another frame. */
function tagOf(data: unknown): string {
  if (data === null || typeof data === "string") return data === null ? "null" : "string";
  return Object.prototype.toString.call(data).slice(8, -1);
}

function article(tag: string): string {
  if (tag === "null") return tag;
  return `${/^[AEIO]/.test(tag) ? "an" : "a"} ${tag}`;
}

/** Numbers without a shape are as in the GPU's memory. */
function checkCount(count: number, element: KernelArray, perItem: number, what: string, wanted: string): void {
  if (count === 0) throw new ShoalError(0, "empty_input", `${what} is empty: there is nothing to compute`);
  const each = element.lanes * perItem;
  if (each === 0 || count % each === 0) return;
  const padding = isPadded(element)
    ? `. In memory a ${element.type} takes ${element.lanes}, padding included; with a shape, { data, shape: [n, 3] }, Shoal adds that`
    : "";
  throw bad(`${what} has ${count} numbers, but ${wanted}: they do not divide into items of ${each}${padding}`);
}

function checkShape(shape: readonly number[], count: number, what: string): void {
  const product = shape.reduce((product, axis) => product * axis, 1);
  const whole = shape.every((axis) => Number.isInteger(axis) && axis > 0);
  if (whole && product === count) return;
  throw bad(`${what} has ${count} numbers, which do not make the shape [${shape.join(", ")}]`);
}
