/** What the page, the brain Worker and the engine Workers say to each other. */

import type { UnitNote } from "../join/unit.js";
import type { BrainJob, BrainStatus, Offer, UnitFailure } from "../../generated/brain/brain.js";

export type { BrainJob, BrainStatus, Offer, UnitFailure };

/** Where Workers find their code and the coordinator. */
export interface Places {
  /** The coordinator's address without a slash at the end. */
  base: string;
  brainWasm: string;
  gpuWasm: string;
  /** URLs a Worker may start: of the own origin, or of a blob. */
  gpuWorker: string;
  wasiWorker: string;
}

export interface Start {
  type: "start";
  places: Places;
  token: string;
  identity: Uint8Array;
  offer: Offer;
}

/** From the page to the brain Worker. */
export type ToBrain =
  | Start
  | { type: "offer"; offer: Offer }
  | { type: "pause"; paused: boolean }
  | { type: "stop" };

/** From the brain Worker to the page. */
export type FromBrain =
  | { type: "status"; status: BrainStatus }
  | { type: "started"; unit: UnitNote }
  | { type: "ended"; attempt: number; failure?: UnitFailure; revoked?: true }
  /** The GPU stopped answering (why), or answers again. */
  | { type: "gpu"; problem?: string }
  | { type: "stopped"; reason?: string };

export interface UnitSpan {
  attempt: number;
  job: number;
  start: number;
  len: number;
}

/** From the brain Worker to an engine Worker. */
export type ToEngine =
  | { type: "open"; base: string; wasm: string; session: string }
  | { type: "session"; session: string }
  /** Before the first unit of a job. */
  | { type: "job"; job: number; info: BrainJob }
  | { type: "run"; unit: UnitSpan }
  | { type: "abort"; attempt: number }
  | { type: "forget"; job: number };

/** From an engine Worker to the brain Worker. */
export type FromEngine =
  /** The engine is open. */
  | { type: "ready" }
  /** It cannot be opened: the device is missing or does not answer. */
  | { type: "broken"; message: string }
  | AboutUnit;

export type AboutUnit =
  /** The clock of the time limit starts anew: a kernel was submitted, or the program begins an item. */
  | { type: "clock"; attempt: number; item?: number }
  /** Nothing of this unit computes any more. */
  | { type: "rest"; attempt: number }
  /** The end of what a program wrote to stderr so far. */
  | { type: "stderr"; attempt: number; tail: string }
  | { type: "done"; attempt: number; took: number; result: UnitResult }
  /** `fatal`: the Worker is of no more use and must be replaced. */
  | { type: "failed"; attempt: number; took: number; failure: UnitFailure; fatal?: true };

export type UnitResult = { inline: Uint8Array<ArrayBuffer> } | { hash: string; size: number };
