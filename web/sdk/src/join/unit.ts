/** A unit at work, for the donor's eyes. */

import type { JobKind } from "../types.js";

export interface UnitNote {
  attempt: number;
  job: number;
  jobName: string;
  /** For whom. */
  owner: string;
  /** The key that stands for the code: 64 hex digits. */
  signer?: string;
  /** Whether that is the coordinator itself, because nobody else signed. */
  signedHere: boolean;
  kind: JobKind;
  /** Its first item and how many they are. */
  start: number;
  len: number;
  lane: "gpu" | "cpu";
}
