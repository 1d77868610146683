/** What the brain Worker asks of the GPU Worker for a simulation, and its answers. */

import type { SimCommand } from "../../generated/crew/crew.js";
import type { UnitFailure } from "../../generated/brain/brain.js";
import type { UnitResult } from "./messages.js";

export type { SimCommand };

/** To the GPU Worker. */
export type ToSim =
  /** How long does a step take here? */
  | { type: "audition"; crew: number; job: number }
  /** Commands of a crew are done in order. */
  | { type: "sim"; crew: number; command: SimCommand }
  /** The crew's band is not needed any more. */
  | { type: "leave"; crew: number };

/** From the GPU Worker. */
export type FromSim =
  | { type: "auditioned"; crew: number; heard: Auditioned | { failure: UnitFailure } }
  | { type: "simmed"; crew: number; answer: SimAnswer };

/** What one step of so many cells took, once warm, in milliseconds. */
export interface Auditioned {
  cells: number;
  took: number;
}

/** The answer to a command. */
export type SimAnswer = { epoch: number } & (
  | { is: "edges"; step: number; top: Uint8Array<ArrayBuffer>; bottom: Uint8Array<ArrayBuffer>; took: number }
  | { is: "kept"; step: number; hash: string; size: number }
  | { is: "final"; result: UnitResult }
  | { is: "shown" }
  /** A few numbers for each row, in order. */
  | { is: "reduced"; step: number; rows: Float64Array }
  | { is: "failed"; failure: UnitFailure }
);
