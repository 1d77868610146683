/** What the coordinator's HTTP API takes.
 *
 * Made from `crates/api` and `crates/kinds` by `cargo xtask types`: change it there. */

import type { Params, Verify } from "../types.js";

/** An Ed25519 signature of the words `shoal code 1`, a zero byte and the BLAKE3 hash of the code: of the kernel's
 * text exactly as submitted, or of the module's bytes. */
export interface CodeSignature {
  /** The public key, 64 hexadecimal digits. */
  key: string;
  /** 128 hexadecimal digits. */
  signature: string;
}

export interface CommonRequest {
  /** The submitter's own node: an interactive job goes there first, then to the nearest. */
  home?: number;
  limits?: Limits;
  /** What people see. Default: the kind. */
  name?: string;
  /** For whom: shown to donors. */
  owner?: string;
  /** Default: `normal`. */
  priority?: Priority;
  /** Who stands for the code. Default: the coordinator itself. */
  signature?: CodeSignature;
  strategy?: Strategy;
  /** How much floats from different kinds of devices may differ. Default: what honest devices stay within. */
  tolerance?: Tolerance;
  /** Items in every unit. Default: chosen by each node's measured speed. */
  unit?: number;
  /** How answers are checked: `none`, `spot` (one in ten is computed twice), `spot:0.25`, `quorum:3` or `adaptive`.
   * Default: `adaptive`. */
  verify?: Verify;
  /** Its share among jobs of the same priority, from 1 to 10000. Default: 100. */
  weight?: number;
}

/** A draft that is complete. */
export interface DraftRequest {
  file: string;
}

export type Edge = "clamp" | "wrap" | "mirror";

export interface ExecFile {
  blob: string;
  name: string;
}

export interface ExecLines {
  blob: string;
  /** Lines for each run. Default: 1. */
  perRun?: number;
}

/** A WASI program, run once for each line or file. */
export interface ExecRequest {
  kind: "exec";
  args?: string[];
  /** Whether the program sees the real time. */
  clock?: boolean;
  env?: Record<string, string>;
  /** Run once for each file: its bytes on stdin, its name in `SHOAL_INPUT`. */
  files?: ExecFile[];
  /** Files every run finds, read-only, in `/data`. Not for components. */
  folder?: ExecFile[];
  /** Run once for each line (or group of lines) of a text. */
  lines?: ExecLines;
  /** Hash of a wasm32-wasip1 module, or of a wasm32-wasip2 component, which only machines run. */
  module: string;
  /** Exit codes of runs that did not fail. Default: only 0. */
  okExit?: number[];
  /** What happens when a run fails: ends with an exit code that is not in `okExit`, traps, or goes over a limit.
   * Default: `continue`. */
  onError?: OnError;
  /** How often a failed run is tried again, each time with other random bytes. At most 100. */
  retry?: number;
}

/** A job to run: what is common to all kinds, and one kind. */
export type JobRequest = CommonRequest & WorkRequest;

/** A map kernel to be looked at, as in a job's request. */
export interface KernelRequest {
  /** The entry point; may be left out if there is only one. */
  entry?: string;
  /** Values for the kernel's parameter block, by member name; they are checked too. */
  params?: Params;
  wgsl: string;
}

/** What one unit may use; for exec, one run of the program. */
export interface Limits {
  /** Default: 256. */
  memoryMiB?: number;
  /** Default: 16. */
  outputMiB?: number;
  /** Default: 30. */
  seconds?: number;
}

/** A language model that continues texts. */
export interface LlmRequest {
  kind: "llm";
  /** Where several devices share the model: what each of them has. With `layers` (the default) it has some layers,
   * and a token goes from device to device. With `tensors` it has some rows of every matrix, and all devices compute
   * each layer together; numbers always travel as `f32`, and only native nodes take part. */
  by?: string;
  /** Tokens of a conversation at most. Default: 4096, or what the model was made for if that is less. */
  context?: number;
  /** Conversations that a node holds at a time. Default: 4. */
  conversations?: number;
  /** The hash of the GGUF file. */
  model: string;
  /** What computes it: `processor` (the default) or `gpu`. On a GPU the numbers are right within a tolerance and not
   * the same on every device, so some words may differ from device to device. One device has all of the model: `by`,
   * `wire` and `split` are refused beside it, and there are no embeddings. */
  on?: string;
  /** Where several devices share the model: how the numbers between its layers travel. `f32` (the default) keeps
   * every word as one device says it; `f16` and `int8` send a half and about a quarter of the bytes, and change some
   * words. */
  wire?: string;
}

export type MapReduce = MapReduceOp | { wgsl: string };

export type MapReduceOp = "sum" | "min" | "max";

/** A WGSL kernel over the elements of arrays. */
export interface MapRequest {
  kind: "map";
  /** What an item reads before the first and behind the last element. Default: `clamp`. */
  edge?: Edge;
  /** The entry point; may be left out if there is only one. */
  entry?: string;
  /** One for each read-only array of the kernel, in binding order. */
  inputs?: MapRequestInput[];
  /** How many items there are; needed when no input is split. */
  items?: number;
  /** Elements of output for each item. Default: 1. */
  outPerItem?: number;
  /** Values for the kernel's parameter block, by member name. */
  params?: Params;
  /** Brings the outputs of all items together. The result is one of each block of 256 items, in order; the job's
   * `reduced` says how to go on until one is left. */
  reduce?: MapReduce;
  wgsl: string;
}

export interface MapRequestInput {
  /** Hash of the array's bytes. */
  blob: string;
  /** How many elements away from its own an item may look. Default: what the kernel does. */
  overlap?: number;
  /** Elements for each item. Default: 1. */
  perItem?: number;
  /** What the bytes are: `f32`, `i32`, `u32`, or the whole element as the kernel writes it, such as `vec2<f32>`. The
   * job is refused if the kernel reads something else. Left out, the bytes are taken as whatever the kernel reads. */
  type?: string;
  /** Every unit gets all of it, instead of its share. */
  whole?: boolean;
}

/** Units without content, to measure the pool itself. */
export interface NoopRequest {
  kind: "noop";
  items: number;
}

export type OnError = "continue" | "stop";

/** An ONNX model that answers requests, or runs over many inputs. */
export interface OnnxRequest {
  kind: "onnx";
  /** Of a job: an array for each input of the model, whose first axis counts the items. A service has none. */
  inputs?: OnnxRequestInput[];
  /** The hash of the ONNX file. */
  model: string;
  /** For a model that is split over several devices: the shapes of inputs whose dimensions the file leaves open. */
  shapes?: Record<string, number[]>;
  /** For a model that is split: how tensors travel between its devices, as `f32`, `f16` or `int8`. Default: `f32`. */
  wire?: string;
}

/** An array of items for an input of a model. */
export interface OnnxRequestInput {
  /** Hash of the array's bytes: little-endian, the last axis first. */
  blob: string;
  /** The model's name for the input. May be left out if it has only one. */
  name?: string;
  /** The first axis counts the items. */
  shape: number[];
  /** As NumPy calls it: `float32`, `uint8`, ... */
  type: string;
}

/** A result that was written where it belongs. */
export interface PlacedRequest {
  /** BLAKE3 of the bytes, 64 hexadecimal digits. */
  hash: string;
  offset: number;
  size: number;
}

/** A poke at the field of a simulation. */
export interface Poke {
  /** Where, in cells: x, y. */
  at: [number, number];
  /** By how much, in cells: x, y. */
  by?: [number, number];
  /** In cells. Default: 8. */
  radius?: number;
  /** What it means is up to the kernel. Default: 1. */
  strength?: number;
}

export type Priority = "batch" | "normal" | "interactive";

/** What becomes of all cells. */
export type Reduce = "sum" | "min" | "max" | "mean";

/** A WGSL kernel over the tiles of a picture. */
export interface RenderRequest {
  kind: "render";
  entry?: string;
  height: number;
  params?: Params;
  /** Default: 1. */
  samples?: number;
  /** Edge of a tile in pixels. Default: 64. */
  tile?: number;
  wgsl: string;
  width: number;
}

export interface ServiceCommon {
  /** Seconds without work after which a node beyond `least` is released. Default: 60. */
  idleSeconds?: number;
  /** Number of nodes that keep it ready while there is memory. Default: 1. */
  least?: number;
  /** For each request. */
  limits?: Limits;
  /** Number of nodes that may keep it ready when requests are waiting. Default: 4. */
  most?: number;
  /** What clients call it in `/api/v1/services/NAME`. */
  name?: string;
  /** For whom: shown to donors. */
  owner?: string;
  /** Requests that may wait; more are refused. Default: 64. */
  queue?: number;
  /** Who stands for the code. Default: the coordinator itself. */
  signature?: CodeSignature;
  /** Whether several devices may keep it ready together, each some of its parts: `auto` (where no device has the
   * memory for all of it, or several answer sooner), `never`, or how many. Default: `auto` for language models,
   * `never` for everything else. */
  split?: string;
  /** Whether other people's devices may serve it too. Their answers are not checked. */
  strangers?: boolean;
}

/** A service to run: what is common to all kinds, and one kind without its items. */
export type ServiceRequest = ServiceCommon & WorkRequest;

/** A WGSL kernel over a grid, step by step, computed by a crew of nodes together. */
export interface SimRequest {
  kind: "sim";
  /** Hash of the first state's bytes, row by row. Default: what the kernel's `init` makes, or zeros. */
  first?: string;
  /** Rows above and below a band that one step reads. Default: what the file says in `// halo: 2`. */
  halo?: number;
  height: number;
  /** Steps between two checkpoints, 0 for none. Default: what a few seconds bring. */
  keepEvery?: number;
  /** Exactly so many nodes. Default: as many as make it fastest. */
  members?: number;
  /** Values for the kernel's parameter block, by member name. */
  params?: Params;
  /** One step, as `advect,jacobi*10,project`. Default: what the file says in `// passes: ...`, or its entry points
   * in order. */
  passes?: string;
  /** At every checkpoint and at the end the members bring all cells together, each number of a cell by itself; the
   * job's `sim.reduced` has the last totals. */
  reduce?: Reduce;
  /** One WGSL module: its entry points are the passes of a step; `init` and `show` are special. */
  source: string;
  /** Go on with guessed halos where true ones are late, and correct what was guessed wrong. */
  speculate?: boolean;
  steps: number;
  /** Cells of a row. */
  width: number;
}

/** Bytes that somebody means to store. */
export interface SizeRequest {
  size: number;
}

export type Strategy = "adaptive" | "round-robin" | "weight";

/** A newcomer's one-line job. */
export interface SubmitJobRequest {
  /** `matmul`: each element of the product of two made-up matrices. */
  computeType?: string;
  iterations?: number;
  tensorSize?: number;
}

/** Answers agree where one of these bounds holds; those left out are the usual ones of the type. */
export interface Tolerance {
  /** Largest difference; for 8-bit pixels, in steps of 255. */
  abs?: number;
  /** Largest difference as a part of the larger of the two. */
  rel?: number;
  /** Largest number of representable values between the two. */
  ulps?: number;
}

export type WorkRequest = NoopRequest | MapRequest | RenderRequest | ExecRequest | SimRequest | OnnxRequest | LlmRequest;
