/** What the coordinator's HTTP API says, as it says it. */

import type { MapRequestInput } from "./numbers/types.js";
import type { SimInfo, SimRequest } from "./sim.js";

/** A kind of work, such as "map" or "exec". A newer coordinator may know more of them than this SDK. */
export type JobKind = string;
export type JobState = "running" | "done" | "failed" | "cancelled";
/** How answers are checked. `none`: not at all. `spot`: a fraction of the units, chosen at random. `quorum:N`: N nodes of
 * different owners must agree on every unit. `adaptive`: every answer of a new node, and fewer the longer it is right. */
export type Verify = "none" | "spot" | `spot:${number}` | `quorum:${number}` | "adaptive";
export type Priority = "batch" | "normal" | "interactive";
export type Strategy = "adaptive" | "round-robin" | "weight";

export interface Job {
  id: number;
  name: string;
  owner: string;
  kind: JobKind;
  state: JobState;
  items: number;
  itemsDone: number;
  itemsLeased: number;
  unitsDone: number;
  unitsLeased: number;
  /** How its answers are checked. */
  verify: string;
  priority: Priority;
  /** Its share among jobs of the same priority. Default: 100. */
  weight: number;
  /** Units that are computed and wait for another device to check them. */
  unitsChecking: number;
  /** Of the units done: another device computed them too, whole or in part, with the same answer. Under `quorum:N`, N agreed. */
  unitsChecked: number;
  /** Of the units done: computed by your own devices, not checked. */
  unitsOwn: number;
  /** Of the units done: not checked, because no other device could check a stranger's answer, or because `verify` is `none`. */
  unitsUnchecked: number;
  /** Units given to a second node because the first one was slow. */
  speculated: number;
  /** The key that signed its code. */
  signedBy: string | null;
  /** Whether that is the coordinator's own key, because the code came unsigned. */
  signedHere: boolean;
  /** Units given to another node because the first one left, stalled or failed. */
  retries: number;
  /** Milliseconds since 1970, like `Date.now()`. */
  submitted: number;
  started: number | null;
  ended: number | null;
  /** Items per second lately. */
  rate: number;
  etaSeconds: number | null;
  /** Nodes connected now that could compute this job. */
  ableNodes: number;
  shares: Share[];
  error: JobError | null;
  result: { bytes: number; itemBytes: number | null } | null;
  render: RenderInfo | null;
  sim: SimInfo | null;
  /** Of a map or simulation: the WGSL scalar type of the output and how many make one item. */
  output: { type: string; perItem: number } | null;
  /** What whoever submitted it should know, in sentences. */
  notes: string[];
  /** How a reduction goes on: a map over the result with the kernel `copy`, reduced with `combine`, until one block is left. */
  reduced: { items: number; element: string; columns: number; combine: string; copy: string } | null;
}

/** How much of a job one node did. */
export interface Share {
  node: number;
  name: string;
  items: number;
  units: number;
}

export interface JobError {
  /** A whole sentence: which input, which limit, which nodes. */
  message: string;
  item: number | null;
  /** The input's name or line number. */
  input: string | null;
  stderr: string;
  nodes: string[];
}

export interface RenderInfo {
  width: number;
  height: number;
  tile: number;
  pixel: "rgba8" | "rgba32float";
  samples: number;
}

export interface PoolNode {
  id: number;
  name: string;
  kind: "native" | "browser";
  gpu: { name: string; backend: string; software: boolean } | null;
  cpuSlots: number;
  /** Bytes of memory lent: all work that runs there at once stays within it. */
  memory: number;
  threads: number;
  /** What computes there, by the name jobs ask for it. */
  engines: { name: string; version: string; speed?: number }[];
  speed: number;
  rate: number;
  load: number;
  leases: number;
  running: number;
  job: number | null;
  jobName?: string;
  paused: boolean;
  unitsDone: number;
  unitsFailed: number;
  /** Bytes of blobs it sent to other nodes. */
  gaveBytes: number;
  /** How many nodes say that it sent them wrong bytes. */
  gaveWrong: number;
  joined: number;
  /** Its public key. */
  identity: string;
  /** Nodes of one class agree bit for bit; `null` is unknown. */
  class: string | null;
  /** Your own device (it joined with the API key). Its answers are not checked. */
  trusted: boolean;
  roundTripMs: number | null;
  /** Its recent speed, in percent of its best. */
  pacePercent: number;
  condition: DeviceCondition;
  trust: { gpu: Trust; cpu: Trust };
}

export interface DeviceCondition {
  visible: boolean;
  batteryPercent: number | null;
  charging: boolean;
  metered: boolean;
}

/** How a node's answers for one kind of work turned out so far. */
export interface Trust {
  /** Right answers in a row. */
  streak: number;
  wrong: number;
  /** Wrong too often: it gets no more of this work. */
  barred: boolean;
  /** Right so often that only some answers are checked. */
  veteran: boolean;
}

export interface PoolInfo {
  /** The link that lets a device join. */
  join: string;
  version: string;
  nodes: number;
  /** The coordinator's public key: signs receipts, and code that came unsigned. */
  key: string;
  offers: Record<string, number>;
  /** How blobs reach nodes, in bytes since the coordinator's start. */
  blobs: {
    /** Given by the coordinator. */
    served: number;
    /** Given by one node to another. */
    exchanged: number;
    /** Pairs of nodes that can exchange some now. */
    links: number;
  };
}

export interface Unit {
  start: number;
  len: number;
  state: "waiting" | "leased" | "done";
  node?: number;
}

export interface UnitList {
  units: Unit[];
  truncated: boolean;
}

/** Stored bytes: their BLAKE3 hash in hex and how many they are. */
export interface BlobRef {
  hash: string;
  size: number;
}

export interface Limits {
  seconds?: number;
  memoryMiB?: number;
  outputMiB?: number;
}

export type ParamValue = number | boolean | readonly number[];
export type Params = Readonly<Record<string, ParamValue>>;

interface CommonRequest {
  name?: string;
  owner?: string;
  strategy?: Strategy;
  /** Items in every unit; without it they adapt to each node. */
  unit?: number;
  limits?: Limits;
  /** `adaptive` without it. */
  verify?: Verify;
  /** How much floats from different kinds of devices may differ. Default: what honest devices stay within. */
  tolerance?: { abs?: number; rel?: number; ulps?: number };
  priority?: Priority;
  /** From 1 to 10000. Default: 100. */
  weight?: number;
  /** The submitter's own node: an interactive job goes there first, then to the nearest. */
  home?: number;
  /** Default: made with the connection's own key. */
  signature?: CodeSignature;
}

/** Who signed the code: 64 and 128 hexadecimal digits. */
export interface CodeSignature {
  key: string;
  signature: string;
}

/** The body of `POST /api/v1/jobs`. */
export type JobRequest = CommonRequest & (NoopRequest | MapRequest | RenderRequest | ExecRequest | SimRequest);

export interface NoopRequest {
  kind: "noop";
  items: number;
}

export interface MapRequest {
  kind: "map";
  wgsl: string;
  entry?: string;
  inputs: MapRequestInput[];
  items?: number;
  outPerItem?: number;
  edge?: Edge;
  /** Combines blocks of 256 items into one each; the job's `reduced` says how to continue. */
  reduce?: "sum" | "min" | "max" | { wgsl: string };
  params?: Params;
}

/** `wrap`: the array wraps around; `mirror`: it is mirrored, its ends included. */
export type Edge = "clamp" | "wrap" | "mirror";

export interface RenderRequest {
  kind: "render";
  wgsl: string;
  entry?: string;
  width: number;
  height: number;
  samples?: number;
  tile?: number;
  params?: Params;
}

export interface ExecRequest {
  kind: "exec";
  module: string;
  args?: string[];
  env?: Record<string, string>;
  lines?: { blob: string; perRun?: number };
  files?: { name: string; blob: string }[];
  folder?: { name: string; blob: string }[];
  clock?: boolean;
}

export type CommonOptions = CommonRequest;

/** As `shoal verify` reads it. */
export interface SignedReceipt {
  receipt: Receipt;
  key: string;
  signature: string;
}

export interface Receipt {
  format: string;
  job: number;
  name: string;
  owner: string;
  kind: JobKind;
  state: JobState;
  items: number;
  policy: { verify: string; tolerance: { dtype: string; abs: string; rel: string; ulps: number } };
  code: { hash: string; signedBy: string; signature: string } | null;
  inputs: { role: string; name?: string; hash: string; size: number }[];
  output: { what: "bytes" | "pixels"; hash: string; size: number } | null;
  submitted: number;
  ended: number;
  nodes: { node: number; name: string; identity: string; class: string | null }[];
  units: ReceiptUnit[];
}

export interface ReceiptUnit {
  start: number;
  len: number;
  node: number;
  at: number;
  hash: string;
  size: number;
  /** Other nodes that gave the same answer; empty if nobody checked it. */
  checkedBy: number[];
  /** One of your own devices gave this answer. */
  own: boolean;
  /** As many devices agreed as the policy requires. */
  sure: boolean;
}
