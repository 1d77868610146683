/** What is given to the calls of a connection. */

import type { OutType } from "./arrays.js";
import type { Source } from "./blobs.js";
import type { KeyPair } from "./keyring.js";
import type { MapInput } from "./numbers/types.js";
import type { CommonOptions, Edge, Job, Params } from "./types.js";

export type { KeyPair, Source };

export interface ConnectOptions {
  /** What code is signed with: this browser's own key without it, `null` to leave signing to the coordinator. */
  signer?: KeyPair | null;
}

export interface RunOptions {
  /** Called when the job moved on, with all that is known of it. */
  onProgress?: (job: Job) => void;
  /** Aborting cancels the job on the pool too. */
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
  /** Elements of output for each item; 1 without it. */
  outPerItem?: number;
  /** What an item reads before the first and behind the last element: `clamp`, the first or the last one, without it. */
  edge?: Edge;
  params?: Params;
  /** The type the result must have: checked when it comes, and known to TypeScript. */
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
  /** Tiles that became ready; `tile` fetches one. */
  onTiles?: (tiles: number[], job: number) => void;
}

export interface ExecOptions extends CommonOptions {
  /** A `wasm32-wasip1` program. */
  module: Source;
  args?: string[];
  env?: Record<string, string>;
  /** One run for each line, or for each `perRun` lines. */
  lines?: readonly string[] | string | { blob: string };
  perRun?: number;
  /** One run for each file: its bytes on stdin, its name in `SHOAL_INPUT`. */
  files?: readonly { name: string; data: Source }[];
  /** Files that every run finds, read-only, in `/data`. */
  folder?: readonly { name: string; data: Source }[];
  /** Whether the program sees the real time. */
  clock?: boolean;
}
