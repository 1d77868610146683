/** A unit at work, for the donor's eyes. */

import type { JobKind } from "../types.js";

export interface UnitNote {
  attempt: number;
  job: number;
  jobName: string;
  /** For whom. */
  owner: string;
  kind: JobKind;
  /** Its first item and how many they are. */
  start: number;
  len: number;
  lane: "gpu" | "cpu";
}
