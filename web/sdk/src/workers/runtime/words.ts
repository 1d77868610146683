/** What the models' Worker and the one with onnxruntime-web say to each other. */

/** What the device lends to it. */
export interface Means {
  threads: number;
  gpu: boolean;
  /** Bytes for models that are loaded and their runs; infinite where a page runs models for itself. */
  memory: number;
}

/** More than these seldom make a model faster, and half of a processor's threads share a core with the other half. */
const MOST_THREADS = 4;

/** What models use of a device that is lent whole. */
export function usualThreads(): number {
  return Math.max(1, Math.min(MOST_THREADS, Math.ceil((navigator.hardwareConcurrency || 1) / 2)));
}

/** Where the Worker's files are. */
export interface Open {
  type: "open";
  /** The code that loads the module, and the module. */
  glue: string;
  wasm: string;
  threads: number;
}

export type ToRuntime =
  | Open
  | { type: "load"; model: number; file: Uint8Array<ArrayBuffer> }
  /** Packed tensors, as engines take them. */
  | { type: "run"; id: number; model: number; request: Uint8Array<ArrayBuffer> }
  | { type: "drop"; model: number };

export type FromRuntime =
  | { type: "loaded"; model: number; version: string; webgpu: boolean }
  | { type: "unable"; model: number; message: string }
  | { type: "ran"; id: number; answer: Uint8Array<ArrayBuffer>; took: number }
  | { type: "failed"; id: number; message: string };
