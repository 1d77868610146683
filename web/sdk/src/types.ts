/** What the coordinator's HTTP API says, as it says it. */

export type JobKind = "noop" | "map" | "render" | "exec";
export type JobState = "running" | "done" | "failed" | "cancelled";
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
  /** Units lent again after a node left, stalled or failed. */
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
  /** Of a map: the WGSL scalar type of the output and how many make one item. */
  output: { type: string; perItem: number } | null;
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
  joined: number;
}

export interface PoolInfo {
  /** The link that lets a device join. */
  join: string;
  version: string;
  nodes: number;
  offers: Record<string, number>;
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
}

/** The body of `POST /api/v1/jobs`. */
export type JobRequest = CommonRequest & (NoopRequest | MapRequest | RenderRequest | ExecRequest);

export interface NoopRequest {
  kind: "noop";
  items: number;
}

export interface MapRequest {
  kind: "map";
  wgsl: string;
  entry?: string;
  inputs: { blob: string; whole?: boolean; perItem?: number }[];
  items?: number;
  outPerItem?: number;
  params?: Params;
}

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
