/** Inputs held against what a model takes, before anything is sent. */

import type { ModelPort } from "../api/answers.js";
import { ShoalError } from "../http.js";
import { type Asked, element, type Sent, type Sight } from "./tensors.js";
import type { BoxesOptions, ModelInput, PictureInput, TensorData } from "./types.js";

/** All inputs of a model as they are sent, or an error that says what was expected. */
export function checked(ports: readonly ModelPort[], inputs: Readonly<Record<string, ModelInput>>, boxes?: BoxesOptions): Asked {
  for (const name of Object.keys(inputs)) {
    if (ports.some((port) => port.name === name)) continue;
    throw refused(`the model has no input "${name}", only ${ports.map((port) => port.name).join(", ")}`);
  }
  const sight: Sight = { pictures: [] };
  const tensors = ports.map((port) => {
    const input = inputs[port.name];
    if (input === undefined) throw refused(`the input "${port.name}" is missing: expected ${shown(port)}`);
    if (!isPicture(input)) return tensorOf(port, input);
    sight.pictures.push({ name: port.name, fit: input.fit ?? "letterbox", normalize: input.normalize ?? "none" });
    return pictureOf(port, input);
  });
  if (boxes) {
    if (sight.pictures.length !== 1) throw refused(`boxes are found in one picture: there are ${sight.pictures.length}`);
    const { score = 0.25, overlap = 0.45, classes } = boxes;
    for (const [name, part] of Object.entries({ score, overlap })) {
      if (!(part >= 0 && part <= 1)) throw refused(`${name} is ${part}: expected a number from 0 to 1`);
    }
    sight.boxes = { score, overlap, ...(classes === undefined ? {} : { classes }) };
  }
  return { tensors, sight };
}

/** The input that takes a picture, if there is one and one only. */
export function picturePort(ports: readonly ModelPort[]): ModelPort | undefined {
  const found = ports.filter((port) => sidesOf(port) !== undefined);
  return found.length === 1 ? found[0] : undefined;
}

/** Width and height of the pictures that an input takes; `usual` where it takes any. None if it takes no pictures. */
export function sidesOf({ shape, datatype }: ModelPort, usual = 640): [number, number] | undefined {
  if (shape.length !== 4 || !["FP32", "UINT8"].includes(datatype)) return undefined;
  const side = (at: number) => ((shape[at] ?? -1) < 0 ? usual : (shape[at] ?? usual));
  if (shape[1] === 3) return [side(3), side(2)];
  return shape[3] === 3 ? [side(2), side(1)] : undefined;
}

/** A port as errors name it: `float32[1x3x640x640]`. */
export function shown({ datatype, shape }: ModelPort): string {
  const sides = shape.map((side) => (side < 0 ? "?" : String(side)));
  return `${element(datatype)?.name ?? datatype}[${sides.join("x")}]`;
}

function isPicture(input: ModelInput): input is PictureInput {
  return "pixels" in input;
}

function pictureOf(port: ModelPort, { pixels, width, height }: PictureInput): Sent {
  const { name } = port;
  if (!sidesOf(port)) throw refused(`the input "${name}" takes no picture: it is ${shown(port)}`);
  const isSide = (side: number) => Number.isInteger(side) && side > 0;
  if (!isSide(width) || !isSide(height) || pixels.length !== width * height * 3) {
    throw refused(`the picture for "${name}" is ${width}x${height} with ${pixels.length} bytes: expected 3 for each pixel`);
  }
  return { name, datatype: "UINT8", shape: [1, height, width, 3], bytes: bytesOf(pixels) };
}

function tensorOf(port: ModelPort, input: Exclude<ModelInput, PictureInput>): Sent {
  const { name, datatype } = port;
  const type = element(datatype);
  if (!type) throw refused(`the input "${name}" is ${datatype}, which this SDK does not know`);
  const [data, given] = ArrayBuffer.isView(input) ? [input, undefined] : [input.data, input.shape];
  if (!(data instanceof type.array)) {
    const found = (data as object | undefined)?.constructor?.name ?? typeof data;
    throw refused(`the input "${name}" is of the type ${found}: expected ${type.array.name} for ${shown(port)}`);
  }
  const shape = given ?? shapeFor(port, data);
  const fits = shape.length === port.shape.length && shape.every((side, at) => port.shape[at] === -1 || port.shape[at] === side);
  // A model may leave open how many sides there are; its port has none then.
  if (!fits && port.shape.length > 0) throw refused(`the input "${name}" has the shape [${shape.join(", ")}]: expected ${shown(port)}`);
  const count = shape.reduce((product, side) => product * side, 1);
  if (count !== data.length) {
    throw refused(`the input "${name}" has ${data.length} numbers: its shape [${shape.join(", ")}] takes ${count}`);
  }
  return { name, datatype, shape: [...shape], bytes: bytesOf(data) };
}

/** The shape of numbers that came without one. */
function shapeFor(port: ModelPort, data: TensorData): number[] {
  const open = port.shape.filter((side) => side < 0).length;
  const fixed = port.shape.reduce((product, side) => (side < 0 ? product : product * side), 1);
  if (open > 1) throw refused(`the input "${port.name}" is ${shown(port)}: pass { data, shape }, because it has several open sides`);
  if (open === 0 && data.length !== fixed) {
    throw refused(`the input "${port.name}" has ${data.length} numbers: expected ${fixed} for ${shown(port)}`);
  }
  const left = data.length / fixed;
  if (open === 1 && !Number.isInteger(left)) {
    throw refused(`the input "${port.name}" has ${data.length} numbers: expected a multiple of ${fixed} for ${shown(port)}`);
  }
  return port.shape.map((side) => (side < 0 ? left : side));
}

function bytesOf(data: TensorData | Uint8ClampedArray): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  // What other threads may change while it is sent is copied.
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}

function refused(message: string): ShoalError {
  return new ShoalError(0, "bad_input", message);
}
