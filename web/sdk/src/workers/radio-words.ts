/** What a node's Worker and its page's radio say to each other. Only a page may open peer connections, so it does it for
 * the Worker: one `MessagePort` for each call of a peer. */

import { LINK_WINDOW } from "../constants.js";

/** From the Worker to the page: begin a call. `port` is for all that follows. */
export interface RadioCall {
  type: "radio";
  port: MessagePort;
  /** The one who dials makes the offer. */
  do: "dial" | "listen";
  /** `stun:host:port` or `turn:host:port user password`. */
  ice: string[];
  /** Whether data channels can live in the Worker. */
  takesChannels: boolean;
}

/** From the Worker, on the call's port. */
export type ToRadio =
  /** The peer's radio said this. */
  | { is: "hear"; words: Uint8Array }
  | { is: "frame"; bytes: Uint8Array<ArrayBuffer> }
  /** Are you there? A frozen page is not. */
  | { is: "ping" }
  | { is: "hang" };

/** From the page, on the call's port. */
export type FromRadio =
  /** Tell this to the peer's radio. */
  | { is: "words"; words: Uint8Array }
  /** The channel itself, not open yet; where it cannot be moved, `up` and frames follow instead. */
  | { is: "channel"; channel: RTCDataChannel }
  | { is: "up" }
  | { is: "down" }
  | { is: "frame"; bytes: ArrayBuffer }
  /** So many bytes of all frames given to the page have left it. */
  | { is: "left"; bytes: number }
  | { is: "pong" };

/** The one channel of a peer connection. */
export const LABEL = "shoal";
/** Waiting to leave on one channel: what a link has on the way at most. More is dropped, and said again by the link. */
export const MOST_WAITING = LINK_WINDOW;
