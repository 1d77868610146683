/** What runs and for whom, for the donor's eyes. */

import type { JobKind } from "../types.js";

export interface JobNote {
  job: number;
  jobName: string;
  /** For whom. */
  owner: string;
  kind: JobKind;
  /** The key that stands for the code: 64 hex digits. */
  signer?: string;
  /** Whether that is the coordinator itself, because nobody else signed. */
  signedHere: boolean;
}

/** A unit at work. */
export interface UnitNote extends JobNote {
  attempt: number;
  /** Its first item and how many they are. */
  start: number;
  len: number;
  lane: "gpu" | "cpu";
}
