/** Models: what they are given, what they give, and where they ran. */

import type { Tensor, TensorData } from "./tensor.js";
import type { ModelPort, ServiceSplit } from "../api/answers.js";

export type { Tensor, TensorData } from "./tensor.js";

/** Where a model can run: in this page, or on the pool. */
export type Place = "local" | "remote";
/** `auto` measures both, keeps to the faster, and falls back to the other. `split` is for models of which several nodes of
 * the pool have a slice each. */
export type Where = "auto" | Place | "split";

/** A picture, which the node that runs the model makes into what the model takes. It is sent as it is, one byte for each
 * colour. */
export interface PictureInput {
  /** Red, green and blue of each pixel, in rows from the top. */
  pixels: Uint8Array | Uint8ClampedArray;
  width: number;
  height: number;
  /** How it becomes as large as the model's input. Default: `letterbox`, all of it with grey margins. */
  fit?: "letterbox" | "crop" | "stretch";
  /** For models that take floats: from 0 to 1 (`none`), or by ImageNet's mean and deviation. Default: `none`. */
  normalize?: "none" | "imagenet";
}

/** A typed array alone will do where the model's shape is fixed, or has one open side. */
export type ModelInput = TensorData | Tensor | PictureInput;

/** Asks for what a detector found instead of all that it says. The request must have one picture. */
export interface BoxesOptions {
  /** The least score of a box. Default: 0.25. */
  score?: number;
  /** Of two boxes of a class that overlap by more than this, the better one stays. Default: 0.45. */
  overlap?: number;
  /** How many classes the model has, if its output does not tell. */
  classes?: number;
}

export interface LoadOptions {
  /** Bytes of the model's file that are here, while it is loaded into this page. */
  onProgress?: (loaded: number, total: number) => void;
  signal?: AbortSignal;
}

export interface ModelRunOptions extends LoadOptions {
  /** Default: what the model was opened with, and `auto` without that. `local` never sends anything of the input. */
  where?: Where;
  /** Milliseconds in which the answer must be there. With `auto`, part of it is kept for the other place. On the pool, a
   * second node is asked as well near their end. */
  budgetMs?: number;
  boxes?: BoxesOptions;
}

export interface ModelOptions extends LoadOptions {
  where?: Where;
}

/** Milliseconds of each stage; those that there were. */
export interface Stages {
  /** Making the picture small. */
  prepare?: number;
  /** Loading the model into this page, the first time. */
  load?: number;
  /** On the way to the pool and through it, and back until the answer began. */
  send?: number;
  /** Until a node was free. */
  wait?: number;
  /** In the model. Of a node: with its own way to the coordinator and back. */
  run: number;
  /** From the answer's first byte to its last. */
  receive?: number;
  /** Of the whole call, with everything that was tried in vain. */
  total: number;
}

/** Where a model ran, and why there. */
export interface Ran {
  /** `split`: through several nodes, each with a slice of the model. */
  where: Place | "split";
  /** The node that answered, if it was not this page. */
  node?: { id: number; name: string };
  /** Of this page: the engine that answered, `rten` or `onnxruntime-web` (`onnxruntime-web-webgpu` on a GPU). */
  engine?: string;
  /** Nodes of the pool that it went through. */
  stages?: number;
  why: string;
  ms: Stages;
  /** Over the network. */
  bytes: { sent: number; received: number };
}

export interface ModelAnswer {
  outputs: Readonly<Record<string, Tensor>>;
  ran: Ran;
}

/** A thing that a detector found. */
export interface FoundBox {
  class: number;
  name: string;
  score: number;
  /** In the picture's own pixels: left, top, right, bottom. */
  box: readonly [number, number, number, number];
  /** The class's colour: red, green, blue. */
  colour: readonly [number, number, number];
}

export interface Detections {
  /** The best first. */
  boxes: FoundBox[];
  /** The picture's size. */
  width: number;
  height: number;
  ran: Ran;
}

/** What a picture can be read from. A `Blob` is a file such as a PNG or JPEG. */
export type PictureSource = Blob | ImageData | ImageBitmap | HTMLImageElement | HTMLCanvasElement | OffscreenCanvas | HTMLVideoElement;

/** A model of the pool. */
export interface ModelEntry {
  name: string;
  /** Nodes that have it loaded, or slices of it. */
  readyOn: string[];
  /** Those that have a slice each, with what a request costs there, on average. */
  split?: ServiceSplit;
  /** Why the last node could not load it. */
  trouble?: string;
  /** Bytes of its file. */
  size: number;
  inputs: ModelPort[];
  outputs: ModelPort[];
}

export interface AddModelOptions {
  /** What clients call it: letters, digits, "-", "_" and ".". Default: the file's name without its ending. */
  name?: string;
  /** Number of nodes that always keep it ready. Default: 1. */
  least?: number;
  /** Number of nodes that may keep it ready when requests are waiting. Default: 4. */
  most?: number;
  /** Seconds without work after which a node beyond `least` is released. Default: 60. */
  idleSeconds?: number;
  /** Let other people's devices run it too. Nobody checks their answers. */
  strangers?: boolean;
  /** Several nodes keep it ready together, a slice each: how many, or `auto` (only where it pays). Default: `never`. */
  split?: number | "auto" | "never";
  /** To split a model, the shapes of its inputs must be known: those that its file leaves open. */
  shapes?: Record<string, number[]>;
  /** How floats travel from slice to slice. Default: `f32`. */
  wire?: "f32" | "f16" | "int8";
  /** Bytes of the file that the coordinator has. */
  onProgress?: (sent: number, total: number) => void;
  signal?: AbortSignal;
}
