/** What one page gives another, so that it may use a buffer. */

import { GPUPeerError } from "./error.js";

/** `read`: its contents may be fetched. `write`: they may be replaced. `execute`: shaders of the peer may run over it,
 * on the owner's device. */
export type GPUBufferRight = "read" | "write" | "execute";
export const RIGHTS: readonly GPUBufferRight[] = ["read", "write", "execute"];

/** A plain value: it survives `postMessage` and JSON. Good on the connection it was made for, and nowhere else. */
export interface GPUBufferHandle {
  readonly type: "gpu-buffer";
  /** The owner's number in the pool. */
  readonly peer: number;
  /** Which of the buffers the owner exported on this connection. */
  readonly buffer: number;
  readonly label: string;
  /** In bytes. */
  readonly size: number;
  /** `GPUBufferUsage` flags of the owner's buffer. */
  readonly usage: number;
  /** The newest version when the handle was made. */
  readonly version: number;
  /** What the owner allows; it checks every operation against what it granted, not against this. */
  readonly rights: readonly GPUBufferRight[];
  /** Not to be guessed. */
  readonly token: string;
}

export interface ExportOptions {
  /** `read` without it. */
  rights?: GPUBufferRight | readonly GPUBufferRight[];
  /** The buffer's own label without it. */
  label?: string;
}

export function rightsOf({ rights = "read" }: ExportOptions): GPUBufferRight[] {
  const asked = typeof rights === "string" ? [rights] : [...rights];
  const unknown = asked.find((right) => !RIGHTS.includes(right));
  if (unknown !== undefined) throw new TypeError(`unknown right "${unknown}": expected ${RIGHTS.join(", ")}`);
  return RIGHTS.filter((right) => asked.includes(right));
}

/** Says what is wrong with something that should be a handle of that peer. */
export function checkHandle(value: unknown, peer: number): GPUBufferHandle {
  const handle = value as Partial<GPUBufferHandle> | null;
  const numbers = [handle?.peer, handle?.buffer, handle?.size, handle?.usage, handle?.version];
  const isHandle =
    typeof handle === "object" &&
    handle?.type === "gpu-buffer" &&
    numbers.every((number) => Number.isSafeInteger(number)) &&
    typeof handle.token === "string" &&
    Array.isArray(handle.rights);
  if (!isHandle) throw new GPUPeerError("unknown-handle", "this is not a handle: expected the value that exportBuffer returned to the peer");
  if (handle.peer === peer) return handle as GPUBufferHandle;
  const message = `the handle belongs to node ${handle.peer}, but this connection goes to node ${peer}`;
  throw new GPUPeerError("unknown-handle", message);
}

export function freshToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
