/** Services: programs that nodes keep ready for requests. */

import type { Bytes } from "./blobs.js";
import type { Http } from "./http.js";
import type { Priority } from "./types.js";

export interface ServiceOptions {
  /** What clients call it: letters, digits, "-", "_" and ".". */
  name: string;
  /** A `wasm32-wasip1` program, or a `wasm32-wasip2` component, which only machines run. A request is its stdin, the answer its stdout. */
  module: Bytes;
  args?: string[];
  env?: Record<string, string>;
  /** Let the program see the real time and real random numbers. */
  clock?: boolean;
  /** Number of nodes that always keep it ready. Default: 1. */
  least?: number;
  /** Number of nodes that may keep it ready when requests are waiting. Default: 4. */
  most?: number;
  /** Requests that may wait; more are refused. Default: 64. */
  queue?: number;
  /** Seconds without work after which a node beyond `least` is released. Default: 60. */
  idleSeconds?: number;
  /** Let other people's devices serve it too. Nobody checks their answers. */
  strangers?: boolean;
  limits?: { seconds?: number; memoryMiB?: number };
}

export interface AskOptions {
  /** Milliseconds to wait for the answer. Default: 30,000. */
  deadline?: number;
  /** Milliseconds in which the answer should be there. Near their end, a second node is asked as well. */
  budget?: number;
  /** Default: `interactive`. */
  priority?: Priority;
  /** Aborting withdraws the request. */
  signal?: AbortSignal;
}

/** The answer as a stream: its parts come as the node sends them. */
export async function ask(http: Http, name: string, request: Bytes | string, options: AskOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { "content-type": "application/octet-stream" };
  if (options.deadline !== undefined) headers["x-shoal-deadline-ms"] = String(Math.ceil(options.deadline));
  if (options.budget !== undefined) headers["x-shoal-budget-ms"] = String(Math.max(1, Math.ceil(options.budget)));
  if (options.priority !== undefined) headers["x-shoal-priority"] = options.priority;
  const path = `/api/v1/services/${encodeURIComponent(name)}`;
  return http.call(path, { method: "POST", headers, body: request as BodyInit, signal: options.signal });
}
