/** Plain lists of numbers become the typed array a kernel reads, or an error that names the entry at fault. */

import { ShoalError } from "../http.js";

export type Scalar = "f32" | "i32" | "u32";
export type Typed = Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

/** Deeper lists are no arrays; one that holds itself has no end. */
const MOST_AXES = 32;
const RANGES = { i32: [-(2 ** 31), 2 ** 31 - 1], u32: [0, 2 ** 32 - 1] } as const;

export function newArray(scalar: Scalar, length: number): Typed {
  switch (scalar) {
    case "f32":
      return new Float32Array(length);
    case "i32":
      return new Int32Array(length);
    case "u32":
      return new Uint32Array(length);
  }
}

/** `what` names the list in errors; `wanted` says what the kernel reads. */
export function fromList(
  list: readonly unknown[],
  scalar: Scalar,
  what: string,
  wanted: string,
): { numbers: Typed; shape: number[] } {
  const shape = axes(list, what);
  const numbers = newArray(scalar, shape.reduce((product, axis) => product * axis, 1));
  let at = 0;
  const take = (part: readonly unknown[], axis: number, place: string) => {
    if (part.length !== shape[axis]) throw ragged(place, part.length, what, shape[axis] ?? 0);
    for (let i = 0; i < part.length; i += 1) {
      const here = `${place}[${i}]`;
      const entry = part[i];
      if (!(i in part)) throw bad(`${here} is a hole: every place of the list must have a number`);
      if (axis + 1 < shape.length) {
        if (!Array.isArray(entry)) throw bad(`${here} is ${say(entry)}, but its neighbours are lists: all must have the same depth`);
        take(entry, axis + 1, here);
      } else {
        numbers[at] = fitting(entry, scalar, here, wanted);
        at += 1;
      }
    }
  };
  take(list, 0, what);
  return { numbers, shape };
}

/** The lengths along the first entries; whether all others agree shows when they are read. */
function axes(list: readonly unknown[], what: string): number[] {
  const shape: number[] = [];
  for (let part: unknown = list; Array.isArray(part); part = part[0]) {
    if (part.length === 0) throw new ShoalError(0, "empty_input", `${what} is empty: there is nothing to compute`);
    shape.push(part.length);
    if (shape.length > MOST_AXES) throw bad(`${what} is nested more than ${MOST_AXES} levels deep`);
  }
  return shape;
}

function fitting(entry: unknown, scalar: Scalar, here: string, wanted: string): number {
  if (Array.isArray(entry)) throw bad(`${here} is a list, but its neighbours are numbers: all must have the same depth`);
  if (typeof entry !== "number") {
    const hint = typeof entry === "bigint" || typeof entry === "string" ? ": convert it with Number(value)" : "";
    throw bad(`${here} is ${say(entry)}, not a number${hint}`);
  }
  if (scalar === "f32") {
    if (Number.isFinite(entry) && !Number.isFinite(Math.fround(entry))) {
      throw bad(`${here} is ${entry}, which is too large for f32; ${wanted}`);
    }
    return entry;
  }
  const [least, most] = RANGES[scalar];
  if (!Number.isFinite(entry)) throw bad(`${here} is ${entry}, which is not a whole number; ${wanted}`);
  if (!Number.isInteger(entry)) {
    throw bad(`${here} is ${entry}, which is not a whole number; ${wanted}: round it first, as with Math.round(value)`);
  }
  if (entry < least || entry > most) {
    throw bad(`${here} is ${entry}, which does not fit ${scalar} (${least} to ${most}); ${wanted}`);
  }
  return entry;
}

function ragged(place: string, length: number, what: string, first: number): ShoalError {
  const count = (n: number) => (n === 1 ? "1 entry" : `${n} entries`);
  return bad(`${what} is ragged: ${place} has ${count(length)}, others have ${count(first)}`);
}

function say(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `the text ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
    case "bigint":
      return `the BigInt ${value}n`;
    case "object":
      return value === null ? "null" : `a ${Object.prototype.toString.call(value).slice(8, -1)}`;
    default:
      return String(value);
  }
}

export function bad(message: string): ShoalError {
  return new ShoalError(0, "bad_input", message);
}
