/** What a page that talks and its Worker say to each other. */

import type { RadioCall } from "../workers/radio-words.js";

export type ToTalker =
  | {
      type: "start";
      base: string;
      brainWasm: string;
      crewWasm: string;
      token: string;
      name: string;
      identity: { publicKey: Uint8Array; privateKey: CryptoKey };
    }
  /** Calls for a crew of two with that node. Leads to `met` or `notMet`. */
  | { type: "meet"; peer: number }
  | { type: "say"; crew: number; channel: number; bytes: Uint8Array<ArrayBuffer> }
  /** One thing `heard` was taken: so many bytes of it. */
  | { type: "took"; crew: number; bytes: number }
  /** The talk is over. Leads to `parted`. */
  | { type: "leave"; crew: number }
  | { type: "stop" };

export type FromTalker =
  /** In the pool, by this number; others can call it. */
  | { type: "joined"; node: number }
  | { type: "met"; crew: number; peer: number }
  | { type: "notMet"; peer: number }
  | { type: "heard"; crew: number; channel: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: "using"; crew: number; via: "relay" | "direct" }
  /** Not said: too much waits already. */
  | { type: "refused"; crew: number }
  /** The crew is over: the peer left, or this node was out of the pool. */
  | { type: "parted"; crew: number }
  | RadioCall
  | { type: "stopped"; reason?: string };
