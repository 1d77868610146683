/** Tensors as they travel: to nodes and engine Workers packed (`crates/kinds/src/onnx/tensor.rs`), to the coordinator as
 * the Open Inference Protocol has them, with their bytes behind the JSON. */

import { ShoalError } from "../http.js";
import type { Tensor, TensorData } from "./tensor.js";

interface ArrayType {
  new (buffer: ArrayBuffer, offset: number, length: number): TensorData;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
}

export interface Element {
  /** As the protocol calls it. */
  wire: string;
  /** As numpy does. */
  name: string;
  array: ArrayType;
}

/** In the order of `Element` in Rust: a number of it is on the wire. */
const ELEMENTS: readonly Element[] = [
  { wire: "FP32", name: "float32", array: Float32Array },
  { wire: "FP16", name: "float16", array: Uint16Array },
  { wire: "FP64", name: "float64", array: Float64Array },
  { wire: "UINT8", name: "uint8", array: Uint8Array },
  { wire: "INT8", name: "int8", array: Int8Array },
  { wire: "UINT16", name: "uint16", array: Uint16Array },
  { wire: "INT16", name: "int16", array: Int16Array },
  { wire: "UINT32", name: "uint32", array: Uint32Array },
  { wire: "INT32", name: "int32", array: Int32Array },
  { wire: "UINT64", name: "uint64", array: BigUint64Array },
  { wire: "INT64", name: "int64", array: BigInt64Array },
  { wire: "BOOL", name: "bool", array: Uint8Array },
];
const FITS = ["letterbox", "crop", "stretch"] as const;
const RANGES = ["none", "imagenet"] as const;
/** Bytes of each tensor begin at a multiple of this, counted from the first byte of all. */
const ALIGNED = 16;

/** An input, checked. */
export interface Sent {
  name: string;
  datatype: string;
  shape: number[];
  bytes: Uint8Array<ArrayBuffer>;
}

/** What is done beside the model's run. */
export interface Sight {
  pictures: { name: string; fit: (typeof FITS)[number]; normalize: (typeof RANGES)[number] }[];
  boxes?: { score: number; overlap: number; classes?: number };
}

export interface Asked {
  tensors: Sent[];
  sight: Sight;
}

export function element(wire: string): Element | undefined {
  return ELEMENTS.find((element) => element.wire === wire);
}

/** By the name that numpy and onnxruntime have for it. */
export function elementNamed(name: string): Element | undefined {
  return ELEMENTS.find((element) => element.name === name);
}

/** A request for an engine Worker. */
export function pack({ tensors, sight }: Asked): Uint8Array<ArrayBuffer> {
  const head = new Writer();
  head.number(tensors.length);
  for (const { name, datatype, shape } of tensors) {
    head.text(name);
    head.number(ELEMENTS.findIndex(({ wire }) => wire === datatype));
    head.number(shape.length);
    for (const side of shape) head.number(side);
  }
  if (sight.pictures.length > 0 || sight.boxes) head.sight(sight);
  const heads = head.bytes();
  const all = tensors.reduce((sum, { bytes }) => aligned(sum) + bytes.length, 4 + heads.length);
  const packed = new Uint8Array(all);
  new DataView(packed.buffer).setUint32(0, heads.length, true);
  packed.set(heads, 4);
  let at = 4 + heads.length;
  for (const { bytes } of tensors) {
    packed.set(bytes, aligned(at));
    at = aligned(at) + bytes.length;
  }
  return packed;
}

/** What an engine Worker answered. */
export function unpack(packed: Uint8Array<ArrayBuffer>): Record<string, Tensor> {
  return Object.fromEntries(found(packed).map(({ name, type, shape, bytes }) => [name, { data: arrayOf(type, bytes, name), shape }]));
}

/** A tensor among packed ones, whose bytes were not copied. */
export interface Found {
  name: string;
  type: Element;
  shape: number[];
  bytes: Uint8Array<ArrayBuffer>;
}

/** What is packed, in order. */
export function found(packed: Uint8Array<ArrayBuffer>): Found[] {
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const length = view.getUint32(0, true);
  const head = new Reader(packed.subarray(4, 4 + length));
  const heads = Array.from({ length: head.number() }, () => {
    const [name, type] = [head.text(), ELEMENTS[head.number()]];
    return { name, type, shape: Array.from({ length: head.number() }, () => head.number()) };
  });
  let at = 4 + length;
  return heads.map(({ name, type, shape }) => {
    if (!type) throw new ShoalError(0, "bad_answer", `the output "${name}" is of a type that this SDK does not know`);
    const size = shape.reduce((product, side) => product * side, type.array.BYTES_PER_ELEMENT);
    const from = aligned(at);
    at = from + size;
    return { name, type, shape, bytes: packed.subarray(from, from + size) };
  });
}

/** A request's JSON for the coordinator; the bytes of the tensors follow it. */
export function requestJson({ tensors, sight }: Asked): string {
  const inputs = tensors.map(({ name, datatype, shape, bytes }) => {
    const picture = sight.pictures.find((picture) => picture.name === name);
    const more = picture ? { pixels: picture.fit, normalize: picture.normalize } : {};
    return { name, datatype, shape, parameters: { binary_data_size: bytes.length, ...more } };
  });
  return JSON.stringify({ inputs, parameters: { binary_data_output: true, ...(sight.boxes ? { boxes: true, ...sight.boxes } : {}) } });
}

interface AnswerJson {
  outputs: { name: string; datatype: string; shape: number[]; parameters?: { binary_data_size?: number } }[];
}

/** The coordinator's answer; `head` is the length of its JSON. */
export function readAnswer(body: ArrayBuffer, head: number): Record<string, Tensor> {
  const bad = (what: string) => new ShoalError(0, "bad_answer", `the coordinator's answer ${what}`);
  if (!(head > 0 && head <= body.byteLength)) throw bad("does not say where its tensors begin");
  const { outputs } = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 0, head))) as AnswerJson;
  const tensors: Record<string, Tensor> = {};
  let at = head;
  for (const { name, datatype, shape, parameters } of outputs) {
    const [type, size] = [element(datatype), parameters?.binary_data_size];
    if (!type || size === undefined || at + size > body.byteLength) throw bad(`has no bytes for the output "${name}"`);
    tensors[name] = { data: arrayOf(type, new Uint8Array(body, at, size), name), shape };
    at += size;
  }
  return tensors;
}

/** Copied: numbers must begin where their type says. */
function arrayOf({ array }: Element, bytes: Uint8Array<ArrayBuffer>, name: string): TensorData {
  if (bytes.length % array.BYTES_PER_ELEMENT) throw new ShoalError(0, "bad_answer", `the output "${name}" is cut off`);
  return new array(bytes.slice().buffer, 0, bytes.length / array.BYTES_PER_ELEMENT);
}

function aligned(at: number): number {
  return Math.ceil(at / ALIGNED) * ALIGNED;
}

/** Postcard, as far as it is needed here. */
class Writer {
  private readonly out: number[] = [];

  number(value: number): void {
    for (; value > 127; value = Math.floor(value / 128)) this.out.push((value % 128) | 128);
    this.out.push(value);
  }

  text(text: string): void {
    const bytes = new TextEncoder().encode(text);
    this.number(bytes.length);
    this.out.push(...bytes);
  }

  sight({ pictures, boxes }: Sight): void {
    this.number(pictures.length);
    for (const { name, fit, normalize } of pictures) {
      this.text(name);
      this.number(FITS.indexOf(fit));
      this.number(RANGES.indexOf(normalize));
    }
    this.number(boxes ? 1 : 0);
    if (!boxes) return;
    this.out.push(...new Uint8Array(Float32Array.of(boxes.score, boxes.overlap).buffer));
    this.number(boxes.classes === undefined ? 0 : 1);
    if (boxes.classes !== undefined) this.number(boxes.classes);
  }

  bytes(): Uint8Array {
    return Uint8Array.from(this.out);
  }
}

class Reader {
  private at = 0;

  constructor(private readonly from: Uint8Array) {}

  number(): number {
    for (let value = 0, weight = 1; ; weight *= 128) {
      const byte = this.from[this.at++];
      if (byte === undefined) throw new ShoalError(0, "bad_answer", "the engine's answer is cut off");
      value += (byte & 127) * weight;
      if (byte < 128) return value;
    }
  }

  text(): string {
    const length = this.number();
    return new TextDecoder().decode(this.from.subarray(this.at, (this.at += length)));
  }
}
