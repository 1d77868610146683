/** What a page asks for when it lends, and what it hears. */

import type { CrewNote, LinkNote, StageNote } from "./crew.js";
import type { JobNote, UnitNote } from "./unit.js";

export type { CrewNote, JobNote, LinkNote, StageNote };

/** A service that this device keeps ready. */
export interface ServiceNote {
  job: number;
  name: string;
  owner: string;
  /** Bytes it may take. */
  memory: number;
}

/** Whose code may run, by the keys that stand for it: 64 hex digits each. */
export interface Rules {
  /** If this names any keys, only code signed with them runs. */
  only: string[];
  never: string[];
}

/** How much is lent. May be changed at any time with `set`. */
export interface Lend {
  /** Share of the CPU cores for programs, from 0 to 1. Default: 0.5. */
  cpu?: number;
  /** Bytes of memory that all running work may use together. Default: half of what the device has, as far as the browser tells. */
  memory?: number;
  /** Whether to lend the GPU. Default: `true`. */
  gpu?: boolean;
  /** Pause while the device runs on battery. Default: `false`. */
  onlyPluggedIn?: boolean;
  /** What to do while the page is in the background: `pause` lends nothing, `slow` lends half. Default: `pause`. */
  whenHidden?: "go on" | "slow" | "pause";
  /** What to do while the device runs on battery and is below 30 %. Default: `pause`. */
  onLowBattery?: "go on" | "pause";
}

/** The same with nothing left open but the memory, which depends on the device. */
export type Lent = Required<Omit<Lend, "memory">> & Pick<Lend, "memory">;

export interface JoinOptions extends Lend {
  /** The coordinator's address. */
  url: string;
  /** The part after the `#` of the join link. */
  token: string;
  /** The name that people see in the list of nodes. */
  name?: string;
  /** Whose code may run, by the keys that sign it. Default: everybody's. */
  rules?: Rules;
  /** Where to load the Workers from, if not from the coordinator: a folder with a copy of its `/assets`. */
  assets?: string;
  onStatus?: (status: JoinStatus) => void;
  onUnit?: (event: UnitEvent) => void;
  /** Called when the signature of a job's code is wrong, so that none of it runs here. */
  onRefused?: (job: JobNote, message: string) => void;
  /** Take part in what several devices keep ready together, such as slices of a model. The code for it (250 kB) is fetched
   * at once then. Default: false. */
  together?: boolean;
}

export interface JoinStatus {
  state: "starting" | "connecting" | "joined" | "paused" | "waiting" | "stopped";
  /** Why it is paused or was stopped, in words for the donor. */
  reason?: string;
  /** The node's number in the pool. */
  node?: number;
  /** Its public key: 64 hex digits. */
  identity: string;
  /** The coordinator's key, which signs code that was submitted unsigned. */
  coordinator?: string;
  device: { name: string; cores: number; memory: number; gpu: { name: string; software: boolean } | null };
  /** Why kernels cannot run here; programs still do. */
  gpuProblem?: string;
  lent: { cpuSlots: number; memory: number; gpu: boolean };
  running: RunningUnit[];
  /** Simulations that this device computes together with others. */
  crews: CrewNote[];
  /** Services that this device keeps ready, and how many bytes of memory each may take. */
  services: ServiceNote[];
  /** Units that this device has received but not started. */
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
  /** Changes whose code may run. Code that is no longer allowed stops at once. */
  setRules(rules: Rules): void;
  /** Resolves when lending has stopped, with the reason if `stop` was not called. */
  readonly stopped: Promise<string | undefined>;
}
