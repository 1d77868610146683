/** A model on a node of the pool, asked through the coordinator. */

import { type Http, ShoalError } from "../http.js";
import { type Asked, readAnswer, requestJson } from "./tensors.js";
import type { Ran, Tensor } from "./types.js";

export interface RemoteAnswer {
  outputs: Record<string, Tensor>;
  node: Ran["node"];
  /** Nodes that it went through. */
  stages: number;
  ms: { send: number; wait: number; run: number; receive: number };
  bytes: Ran["bytes"];
}

/** `hurries`: it should be answered well within that time. */
export async function infer(http: Http, name: string, asked: Asked, withinMs: number, hurries: boolean, signal: AbortSignal): Promise<RemoteAnswer> {
  const json = new TextEncoder().encode(requestJson(asked));
  const body = new Blob([json, ...asked.tensors.map(({ bytes }) => bytes)]);
  const millis = String(Math.max(1, Math.ceil(withinMs)));
  const headers = {
    "content-type": "application/octet-stream",
    "inference-header-content-length": String(json.length),
    "x-shoal-deadline-ms": millis,
    ...(hurries ? { "x-shoal-budget-ms": millis } : {}),
  };
  const began = performance.now();
  const answer = await http.call(`/v2/models/${encodeURIComponent(name)}/infer`, { method: "POST", headers, body, signal });
  const answered = performance.now();
  const bytes = await answer.arrayBuffer().catch((error: unknown) => {
    signal.throwIfAborted();
    throw new ShoalError(0, "unreachable", `the answer broke off: ${String(error)}`);
  });
  const [wait, run] = [timeOf(answer, "x-shoal-wait-ms"), timeOf(answer, "x-shoal-run-ms")];
  const id = Number(answer.headers.get("x-shoal-node"));
  const called = answer.headers.get("x-shoal-node-name");
  return {
    outputs: readAnswer(bytes, Number(answer.headers.get("inference-header-content-length"))),
    stages: Number(answer.headers.get("x-shoal-stages") ?? 1),
    node: called === null ? undefined : { id, name: decodeURIComponent(called) },
    ms: { send: Math.max(0, answered - began - wait - run), wait, run, receive: performance.now() - answered },
    bytes: { sent: body.size, received: bytes.byteLength },
  };
}

function timeOf(answer: Response, name: string): number {
  return Number(answer.headers.get(name) ?? 0);
}
