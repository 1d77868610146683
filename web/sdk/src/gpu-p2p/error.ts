/** What can go wrong between two pages that share buffers, by names that programs may compare. */

export type GPUPeerErrorCode =
  /** The pool cannot be joined, or was left. */
  | "no-mesh"
  /** No such node in the pool, or one that does not talk. */
  | "not-met"
  /** The peer's page is there and does not answer. */
  | "no-answer"
  /** The peer closed the connection, left the pool, or was lost. */
  | "peer-gone"
  /** A GPU device was lost, here or there. */
  | "device-lost"
  /** One of the two devices cannot do what is required. */
  | "capability"
  /** No handle, not of this connection, forged, or taken back. */
  | "unknown-handle"
  /** The handle does not carry the right. */
  | "denied"
  /** A buffer of another size than the other end's. */
  | "size"
  /** A GPU buffer that was made without the usage this needs, or was destroyed. */
  | "usage"
  /** The owner's buffer has a newer version than the one this is based on. */
  | "stale"
  /** What arrived is not what was sent. */
  | "hash"
  /** A shader that does not compile, or cannot be run over these buffers. */
  | "shader"
  /** Too much at a time. */
  | "busy"
  /** The peer says what nobody should. */
  | "protocol";

export class GPUPeerError extends Error {
  override readonly name = "GPUPeerError";

  constructor(
    readonly code: GPUPeerErrorCode,
    message: string,
  ) {
    super(message);
  }
}

export function asPeerError(error: unknown, code: GPUPeerErrorCode = "protocol"): GPUPeerError {
  if (error instanceof GPUPeerError) return error;
  return new GPUPeerError(code, error instanceof Error ? error.message : String(error));
}
