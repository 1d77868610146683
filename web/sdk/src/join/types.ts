/** What a page asks for when it lends, and what it hears. */

import type { CrewNote, LinkNote } from "./crew.js";
import type { JobNote, UnitNote } from "./unit.js";

export type { CrewNote, JobNote, LinkNote };

/** Whose code may run, by the keys that stand for it: 64 hex digits each. */
export interface Rules {
  /** If any are named, nobody else's. */
  only: string[];
  never: string[];
}

/** How much is lent. May be changed at any time with `set`. */
export interface Lend {
  /** Share of the cores for programs, from 0 to 1. Half without it. */
  cpu?: number;
  /** Whether the GPU is lent. `true` without it. */
  gpu?: boolean;
  /** Rest while on battery. `false` without it. */
  onlyPluggedIn?: boolean;
  /** What to do while the page is out of sight: `pause` (without it) lends nothing, `slow` half. */
  whenHidden?: "go on" | "slow" | "pause";
  /** What to do while the battery empties and is below 30 %: `pause` without it. */
  onLowBattery?: "go on" | "pause";
}

export interface JoinOptions extends Lend {
  /** The coordinator's address. */
  url: string;
  /** What follows the `#` of the join link. */
  token: string;
  /** What people see in the list of nodes. */
  name?: string;
  /** Whose code may run, by the keys that stand for it. Everybody's without it. */
  rules?: Rules;
  /** Where the Workers' code is, if not with the coordinator: a folder with its `/assets`. */
  assets?: string;
  onStatus?: (status: JoinStatus) => void;
  onUnit?: (event: UnitEvent) => void;
  /** A job's code was not what somebody signed, so none of it runs here. */
  onRefused?: (job: JobNote, message: string) => void;
}

export interface JoinStatus {
  state: "starting" | "connecting" | "joined" | "paused" | "waiting" | "stopped";
  /** Why it is paused or was stopped, in words for the donor. */
  reason?: string;
  /** The node's number in the pool. */
  node?: number;
  /** Its public key: 64 hex digits. */
  identity: string;
  /** The coordinator's key, which stands for code that came to it unsigned. */
  coordinator?: string;
  device: { name: string; cores: number; gpu: { name: string; software: boolean } | null };
  /** Why kernels cannot run here; programs still do. */
  gpuProblem?: string;
  lent: { cpuSlots: number; gpu: boolean };
  running: RunningUnit[];
  /** Crews this device computes in, together with others. */
  crews: CrewNote[];
  /** Units lent ahead that wait here. */
  queued: number;
  unitsDone: number;
  unitsFailed: number;
}

/** A unit at work: what, and for whom. */
export interface RunningUnit extends UnitNote {
  /** As `Date.now()` gives it. */
  since: number;
}

export type UnitEvent =
  | { type: "started"; unit: RunningUnit }
  | { type: "finished"; unit: RunningUnit }
  | { type: "failed"; unit: RunningUnit; message: string }
  /** Taken back by the coordinator. */
  | { type: "revoked"; unit: RunningUnit };

export interface JoinHandle {
  readonly status: JoinStatus;
  /** Ends everything at once. */
  stop(): void;
  pause(): void;
  resume(): void;
  set(lend: Lend): void;
  /** For whom the device works from now on: what no longer may run ends at once. */
  setRules(rules: Rules): void;
  /** Resolves when stopped, with the reason if it was not the donor who did it. */
  readonly stopped: Promise<string | undefined>;
}
