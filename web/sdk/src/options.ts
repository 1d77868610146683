/** What is given to the calls of a connection. */

import type { OutType } from "./arrays.js";
import type { Source } from "./blobs.js";
import type { KeyPair } from "./keyring.js";
import type { MapInput } from "./numbers/types.js";
import type { CommonOptions, Edge, Job, Params } from "./types.js";

export type { KeyPair, Source };

export interface ConnectOptions {
  /** The key pair that signs code. Default: this browser's own. `null` leaves signing to the coordinator. */
  signer?: KeyPair | null;
}

export interface RunOptions {
  /** Called with the job's current state whenever it makes progress. */
  onProgress?: (job: Job) => void;
  /** Aborting also cancels the job on the pool. */
  signal?: AbortSignal;
}

export interface MapOptions extends CommonOptions {
  wgsl: string;
  entry?: string;
  /** A typed array of the kernel's type, or a list of numbers, which is converted to it. */
  input?: MapInput;
  /** For kernels with several inputs, in the order of their bindings. */
  inputs?: readonly MapInput[];
  /** How many items there are; needed when no input is split. */
  items?: number;
  /** Output elements for each item. Default: 1. */
  outPerItem?: number;
  /** What an item reads before the first and after the last element. Default: `clamp`, the first or last element. */
  edge?: Edge;
  params?: Params;
  /** The type that the result must have. The SDK checks it, and TypeScript knows it. */
  out?: OutType;
}

export interface RenderOptions extends CommonOptions {
  wgsl: string;
  entry?: string;
  width: number;
  height: number;
  samples?: number;
  tile?: number;
  params?: Params;
}

export interface RenderRunOptions extends RunOptions {
  /** Called with the numbers of tiles that are ready; `tile` fetches one. */
  onTiles?: (tiles: number[], job: number) => void;
}

export interface ExecOptions extends CommonOptions {
  /** A `wasm32-wasip1` program, or a `wasm32-wasip2` component, which only machines run. */
  module: Source;
  args?: string[];
  env?: Record<string, string>;
  /** One run for each line, or for each `perRun` lines. */
  lines?: readonly string[] | string | { blob: string };
  perRun?: number;
  /** One run for each file: its bytes on stdin, its name in `SHOAL_INPUT`. */
  files?: readonly { name: string; data: Source }[];
  /** Files that every run can read in `/data`. Not for components. */
  folder?: readonly { name: string; data: Source }[];
  /** Whether the program sees the real time. */
  clock?: boolean;
  /** What happens when the program fails on an input: by default all others run, and `Answers.failures` lists those that failed. */
  onError?: "continue" | "stop";
  /** Exit codes that are no failure. Default: only 0. */
  okExit?: readonly number[];
  /** How often the program is run again on an input on which it fails, each time with other random numbers. */
  retry?: number;
}
