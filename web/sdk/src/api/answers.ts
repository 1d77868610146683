/** What the coordinator's HTTP API says.
 *
 * Made from `crates/api` and `crates/kinds` by `cargo xtask types`: change it there. */

import type { JobKind } from "../types.js";
import type { Priority, Reduce } from "./requests.js";

/** Bytes that are stored. */
export interface BlobRef {
  /** BLAKE3 of the bytes, 64 hexadecimal digits. */
  hash: string;
  size: number;
}

export interface CrewChange {
  /** Milliseconds since the Unix epoch. */
  at: number;
  epoch: number;
  what: string;
}

/** The nodes that compute it together. */
export interface CrewInfo {
  /** What a step should take on the fastest node alone, if the grid fits there. */
  aloneStepMs: number | null;
  /** What happened to it, oldest first. */
  changes: CrewChange[];
  /** Counts changes of membership. */
  epoch: number;
  /** Steps of the newest whole checkpoint. */
  keptStep: number;
  /** By rank. */
  members: CrewMember[];
  /** What a step should take by what was measured before. */
  predictedStepMs: number | null;
  /** Nodes that could step in. */
  spares: number;
  state: CrewState;
  /** What a step takes, on average in this epoch. */
  stepMs: number | null;
}

/** How its link to another member is doing. */
export interface CrewLink {
  /** Known while the link was full lately. */
  bytesPerSecond: number | null;
  /** Bytes sent directly, in this crew. */
  direct: number;
  /** Lost chunks of a million. */
  loss: number;
  /** Bytes sent through the coordinator, in this crew. */
  relayed: number;
  roundTripMs: number;
  via: CrewVia;
  with: number;
}

export interface CrewMember {
  /** Time at work in this epoch. */
  computedMs: number;
  /** Guessed halos that were wrong and were corrected. */
  corrected: number;
  /** Guessed halos that were right. */
  guessed: number;
  links: CrewLink[];
  name: string;
  node: number;
  /** The first of its rows, and how many they are. */
  rows: [number, number];
  step: number;
  /** Time spent waiting for neighbours in this epoch. */
  waitedMs: number;
}

export type CrewState = "forming" | "working";

/** What carries a link now. */
export type CrewVia = "relay" | "direct";

/** How its device is doing. */
export interface DeviceCondition {
  batteryPercent: number | null;
  charging: boolean;
  metered: boolean;
  /** The page is in front. */
  visible: boolean;
}

/** A file that nobody else writes: to be made, filled, and given over under its hash. */
export interface Draft {
  /** From the data folder on, parts of the path divided by `/`. */
  file: string;
  /** A blob of that size is stored: it may be the same, which its hash tells. */
  mayBeHere: boolean;
}

/** Something that computes. */
export interface EngineInfo {
  name: string;
  version: string;
}

/** Every error's body. */
export interface ErrorAnswer {
  error: ErrorBody;
}

export interface ErrorBody {
  /** For machines, stable. */
  code: string;
  details?: unknown;
  /** For people. */
  message: string;
}

/** Why things are as they are, one sentence in each line. */
export interface Explanation {
  lines: string[];
}

export interface FailedInput {
  /** None if the program trapped or went over a limit. */
  exitCode: number | null;
  /** The input's name or line number. */
  input: string | null;
  /** Counted from 0. */
  item: number;
  /** The limit that it went over, if it did. */
  limit: Limit | null;
  /** How the program ended, as a sentence. */
  message: string;
  /** The end of what it wrote to stderr. */
  stderr: string;
}

/** Inputs on which the program failed, in order. */
export interface FailedInputList {
  failures: FailedInput[];
  /** There are more: ask for those `from` here. */
  next: number | null;
}

/** What a result is made of, whatever kind of work gave it. */
export type Form = "nothing" | "items" | "tiles" | "answers" | "rows";

export interface GpuInfo {
  backend: string;
  /** Bytes of the largest buffer. */
  bufferBytes: number;
  /** Bytes for all buffers of units that run at once; `null` if nobody knows. */
  memory: number | null;
  name: string;
  /** A CPU that plays GPU. */
  software: boolean;
  storageBuffers: number;
  workgroupBytes: number;
  workgroupInvocations: number;
}

/** Whether the coordinator runs. */
export interface InferenceLive {
  live: boolean;
}

/** Whether it, or a model of it, may be asked. */
export interface InferenceReady {
  name?: string;
  ready: boolean;
}

/** Who answers. */
export interface InferenceServer {
  extensions: string[];
  name: string;
  version: string;
}

/** Consecutive items. */
export interface ItemSpan {
  len: number;
  /** The first one, counted from 0. */
  start: number;
}

export interface Job {
  /** Nodes connected now that could compute this job. */
  ableNodes: number;
  ended: number | null;
  error: JobError | null;
  etaSeconds: number | null;
  id: number;
  items: number;
  itemsDone: number;
  /** Of those done: the program failed on them. `GET /api/v1/jobs/{id}/failures` lists them. */
  itemsFailed: number;
  itemsLeased: number;
  /** `noop`, `map`, `render`, `exec`, `sim` or `onnx`. */
  kind: JobKind;
  name: string;
  /** What whoever submitted it should know, in sentences. */
  notes: string[];
  /** Of a map or a simulation. */
  output: JobOutput | null;
  owner: string;
  priority: Priority;
  /** Items per second lately. */
  rate: number;
  /** Of a map whose outputs are brought together: how to go on. */
  reduced: MapReduced | null;
  render: RenderInfo | null;
  result: JobResult;
  /** Units given to another node because the first one left, stalled or failed. */
  retries: number;
  shares: Share[];
  /** The key that signed its code. */
  signedBy: string | null;
  /** Whether that is the coordinator's own key, because the code came unsigned. */
  signedHere: boolean;
  sim: SimInfo | null;
  /** Units given to a second node because the first one was slow. */
  speculated: number;
  started: number | null;
  state: JobState;
  /** Milliseconds since 1970, as JavaScript's `Date.now()` counts them. So are all moments here. */
  submitted: number;
  /** Of a model over many inputs: what a row of the result holds, in order. A row belongs to an item. */
  tensors: JobTensor[] | null;
  /** Of the units done: another device computed them too, whole or in part, with the same answer. Under `quorum:N`,
   * N devices agreed. */
  unitsChecked: number;
  /** Units that are computed and wait for another device to check them. */
  unitsChecking: number;
  unitsDone: number;
  unitsLeased: number;
  /** Of the units done: computed by your own devices, not checked. */
  unitsOwn: number;
  /** Of the units done: not checked, because no other device could check a stranger's answer, or because `verify` is
   * `none`. */
  unitsUnchecked: number;
  /** How answers are checked, as in the request. */
  verify: string;
  /** What it waits for, as a sentence, if it is not being computed. */
  waitsFor: string | null;
  /** Its share among jobs of the same priority. Default: 100. */
  weight: number;
}

export interface JobError {
  /** The input's name or line number. */
  input: string | null;
  /** The item at fault, counted from 0. */
  item: number | null;
  /** A whole sentence: which input, which limit, which nodes. */
  message: string;
  nodes: string[];
  /** The end of what the program wrote to stderr. */
  stderr: string;
}

/** What a job computes from, in order. */
export interface JobInputs {
  inputs: ReceiptInput[];
}

export interface JobList {
  jobs: Job[];
}

/** Elements of a result that is one array. */
export interface JobOutput {
  /** Scalars for each item. */
  perItem: number;
  /** The WGSL scalar: `f32`, `i32`, `u32`, `f16`. Of a model also `i64`, `i8`, `u8` and `bool`. */
  type: string;
}

export interface JobResult {
  /** Size of the whole result; for exec, of what is there so far. */
  bytes: number;
  /** For exec: bytes of what runs left beside their answers so far: files, the ends of stderr, and how those ended
   * that failed. If it is 0, `GET /api/v1/jobs/{id}/left` lists nothing. */
  bytesLeft?: number;
  form: Form;
  /** Bytes of each item, where all have the same. */
  itemBytes: number | null;
}

export type JobState = "running" | "done" | "failed" | "cancelled";

/** A tensor that a row of a result holds. */
export interface JobTensor {
  name: string;
  /** Of one item. */
  shape: number[];
  /** As NumPy calls it: `float32`, `int64`, ... */
  type: string;
}

/** One array of a kernel. */
export interface KernelArray {
  /** Numbers from one element to the next, padding included: 4 for a `vec3<f32>`. */
  lanes: number;
  /** Its variable in the kernel. */
  name: string;
  /** What the element is made of: `f32`, `i32` or `u32`; `mixed` for a struct of several kinds. */
  scalar: string;
  /** Bytes from one element to the next. */
  stride: number;
  /** The element as WGSL writes it: `f32`, `vec2<f32>`, or a struct's name. */
  type: string;
}

export interface KernelInfo {
  entry: string;
  /** The read-only arrays, in binding order. */
  inputs: KernelArray[];
  needs: KernelNeeds;
  output: KernelArray;
  workgroup: [number, number, number];
}

/** What a device must have to run it. */
export interface KernelNeeds {
  /** Storage buffers bound at once. */
  storageBuffers: number;
  /** Bytes of `var<workgroup>`. */
  workgroupBytes: number;
  /** Invocations in one workgroup. */
  workgroupInvocations: number;
}

/** Of a run that did not fail. */
export interface LeftByRun {
  /** What it left in `/out`, in the order of their paths. */
  files: LeftFile[];
  /** The input's name or line number. */
  input: string | null;
  /** Counted from 0. */
  item: number;
  /** The end of what the program wrote to stderr. */
  stderr: string;
}

export interface LeftFile {
  /** With `/` between folders. The device says it: it may be anything. */
  path: string;
  size: number;
}

/** What runs left beside their answers, in order. */
export interface LeftList {
  left: LeftByRun[];
  /** There are more: ask for those `from` here. */
  next: number | null;
}

/** A device that was here. */
export interface LeftNode {
  id: number;
  kind: NodeKind;
  /** To about a minute. */
  lastSeen: number;
  /** What it last called itself. */
  name: string;
  trust: Trusts;
  /** It was your own device. */
  trusted: boolean;
  /** Units of its that counted, ever. */
  unitsDone: number;
  unitsFailed: number;
}

/** What a run may not take more of than its job allows. */
export type Limit = "time" | "memory" | "output";

/** How blocks are brought together further: submit the result as the input of a map with the kernel `copy`, with
 * `columns` elements for each item, in and out, and `{"wgsl": combine}` as `reduce`, until one block is left. */
export interface MapReduced {
  columns: number;
  combine: string;
  copy: string;
  /** What a block becomes, as WGSL writes it. */
  element: string;
  /** Items of the map; an item of the job is a block of 256. */
  items: number;
}

/** What is not computed of a job. */
export interface MissingItems {
  /** Items that are computed. */
  done: number;
  items: number;
  /** The others, in order. */
  missing: ItemSpan[];
}

/** What a model takes and gives. */
export interface ModelInfo {
  /** The ONNX file. The protocol does not have this. */
  file: BlobRef;
  inputs: ModelPort[];
  name: string;
  outputs: ModelPort[];
  /** The parts that devices share if the model is split; empty if it runs whole. The protocol does not have this. */
  parts?: ModelPart[];
  platform: string;
  versions: string[];
}

/** A part of a model, a file of its own. */
export interface ModelPart {
  /** Bytes of its file, and of the tensors that it hands on. */
  bytes: number;
  /** Operators that it computes, and numbers it holds for them. */
  operators: number;
  outBytes: number;
  parameters: number;
}

export interface ModelPort {
  /** `FP32`, `UINT8`, ... */
  datatype: string;
  name: string;
  /** -1 where a request decides. */
  shape: number[];
}

/** What a node is. */
export type NodeKind = "native" | "browser" | "simulated";

export interface NodeList {
  /** With `all`: devices that computed here and are not connected, by number. */
  left: LeftNode[];
  nodes: PoolNode[];
}

export type Pixel = "rgba8" | "rgba32float";

/** How blobs reach nodes, in bytes since the coordinator's start. */
export interface PoolBlobs {
  /** Given by one node to another. */
  exchanged: number;
  /** Pairs of nodes that can exchange some now. */
  links: number;
  /** Given by the coordinator. */
  served: number;
}

export interface PoolInfo {
  blobs: PoolBlobs;
  /** Crews at work. */
  crews: number;
  /** How often the members of one changed. */
  epochs: number;
  /** The link that lets a device join. */
  join: string;
  /** The coordinator's public key, 64 hexadecimal digits: signs receipts, and code that came unsigned. */
  key: string;
  nodes: number;
  offers: PoolOffers;
  /** Whether other devices can open that link. If not, the coordinator listens for this machine only, or has no
   * address in a network. */
  reachable: boolean;
  relay: PoolRelay;
  version: string;
}

export interface PoolNode {
  /** Nodes of one class agree bit for bit on floating-point numbers. 16 hexadecimal digits; `null` is unknown. */
  class: string | null;
  condition: DeviceCondition;
  cpuSlots: number;
  /** What computes there, by the name jobs ask for it. */
  engines: EngineInfo[];
  /** Bytes of blobs it sent to other nodes. */
  gaveBytes: number;
  /** How many nodes say that it sent them wrong bytes. */
  gaveWrong: number;
  gpu: GpuInfo | null;
  id: number;
  /** Its public key, 64 hexadecimal digits. */
  identity: string;
  job: number | null;
  jobName?: string;
  joined: number;
  kind: NodeKind;
  leases: number;
  /** Percent of its slots at work. */
  load: number;
  /** Bytes of memory lent: all work that runs there at once stays within it. */
  memory: number;
  name: string;
  /** Its recent speed, in percent of its best. */
  pacePercent: number;
  paused: boolean;
  /** Measured items per second. */
  rate: number;
  /** From the coordinator to it and back. */
  roundTripMs: number | null;
  running: number;
  /** Declared speed; 100 is a middling laptop. */
  speed: number;
  /** Threads that all work there may have together. */
  threads: number;
  trust: Trusts;
  /** Your own device (it joined with the API key). Its answers are not checked. */
  trusted: boolean;
  unitsDone: number;
  unitsFailed: number;
}

/** The most any one node offers, and sums where they make sense. */
export interface PoolOffers {
  cpuSlots: number;
  gpuNodes: number;
  /** Bytes of the largest GPU buffer. */
  largestBuffer: number;
  /** Bytes of memory, the most of one node. */
  largestMemory: number;
  /** Bytes of memory, all nodes together. */
  memory: number;
  storageBuffers: number;
  workgroupBytes: number;
  workgroupInvocations: number;
}

/** What nodes said to each other through the coordinator, since its start. */
export interface PoolRelay {
  bytes: number;
  /** Frames not passed on, by reason. */
  dropped: Record<string, number>;
  frames: number;
  /** Of those bytes, by QUIC. */
  quic: RelayWay;
  /** Ways by QUIC that nodes opened. */
  quicOpened: number;
  /** Connections by QUIC that were refused. */
  quicRefused: number;
  /** Of those bytes, by WebSocket. */
  socket: RelayWay;
}

export interface Receipt {
  code: ReceiptCode | null;
  /** Milliseconds since 1970. So are all moments here. */
  ended: number | null;
  /** `shoal receipt 1`. */
  format: string;
  inputs: ReceiptInput[];
  items: number;
  job: number;
  kind: JobKind;
  name: string;
  /** Everybody named in `units`. */
  nodes: ReceiptNode[];
  /** Of a job that is done. */
  output: ReceiptOutput | null;
  owner: string;
  policy: ReceiptPolicy;
  /** What the job was asked to compute, beside its code and inputs: what its kind says of it. */
  settings: Record<string, unknown>;
  state: JobState;
  submitted: number;
  units: ReceiptUnit[];
  /** BLAKE3 of all that nodes are told to do, as it is sent to them (postcard). */
  work: string;
}

export interface ReceiptCode {
  /** BLAKE3 of the kernel's text or of the module. */
  hash: string;
  signature: string | null;
  signedBy: string | null;
}

export interface ReceiptInput {
  hash: string;
  name?: string;
  /** `input` of a map; `lines`, `file` or `folder` of an exec. */
  role: string;
  size: number;
}

export interface ReceiptNode {
  /** Its numeric class as last said. */
  class: string | null;
  /** Its public key. */
  identity: string | null;
  name: string;
  node: number;
}

export interface ReceiptOutput {
  hash: string;
  size: number;
  what: ReceiptWhat;
}

export interface ReceiptPolicy {
  tolerance: ReceiptTolerance;
  verify: string;
}

/** Fractions are written as text, so that there is one way to write them. */
export interface ReceiptTolerance {
  abs: string;
  /** `bytes` (bit for bit), `unorm8`, `f16` or `f32`. */
  dtype: string;
  rel: string;
  ulps: number;
}

export interface ReceiptUnit {
  /** When it was merged, to a tenth of a second. */
  at: number;
  /** Other nodes that computed the unit, whole or in part, and gave the same answer. With `node` they are those who
   * agreed. Empty if nobody checked it. */
  checkedBy: number[];
  /** BLAKE3 of the unit's bytes; `null` where there are none. */
  hash: string | null;
  len: number;
  /** Who computed it. */
  node: number;
  /** One of your own devices gave this answer. */
  own: boolean;
  size: number;
  start: number;
  /** As many devices agreed as the policy requires. */
  sure: boolean;
}

/** What the hash of a result is of. */
export type ReceiptWhat = "bytes" | "pixels";

/** Bytes that came by one way, and bytes that left by it. */
export interface RelayWay {
  in: number;
  out: number;
}

export interface RenderInfo {
  height: number;
  pixel: Pixel;
  samples: number;
  tile: number;
  width: number;
}

/** A node that keeps a service ready. */
export interface Replica {
  /** Bytes of its file that are there and that it needs, while a large one comes in pieces; before and after that
   * `null`. */
  fetchedBytes: number | null;
  name: string;
  neededBytes: number | null;
  node: number;
  ready: boolean;
  running: number;
}

export interface Service {
  /** Requests answered since the coordinator started. */
  answered: number;
  /** Devices that keep it ready together, each some of its parts. */
  crew: ServiceSplit | null;
  /** Requests that failed since then. */
  failed: number;
  id: number;
  /** `exec`, `onnx` or `llm`. */
  kind: string;
  /** Nodes that always keep it ready. */
  least: number;
  /** Nodes that keep it ready at most. */
  most: number;
  name: string;
  owner: string;
  /** Requests that went to another node because the first one was lost. */
  repeated: number;
  /** Devices that keep all of it ready. */
  replicas: Replica[];
  /** Requests that are being answered. */
  running: number;
  /** `never`, `auto`, or how many devices keep it ready together. */
  split: string;
  /** Whether other people's devices may serve it. */
  strangers: boolean;
  /** Why the last node that tried could not keep it ready. */
  trouble: string | null;
  /** Requests that wait. */
  waiting: number;
}

/** A device as one that could keep a service ready. */
export interface ServiceAble {
  /** `whole`, `parts` (some of it, together with others) or `nothing`. */
  can: string;
  /** What would compute there, with its version. */
  engines: string[];
  name: string;
  node: number;
  /** Why it cannot keep all of it. */
  why: string | null;
}

/** Why a service is kept ready by those who do, and what other numbers of devices would bring. */
export interface ServiceExplanation {
  /** The devices that are here, those first that can keep it ready; at most 100. */
  devices: ServiceAble[];
  /** What times are for: `token` or `request`. */
  each: string;
  /** All of it in words, one sentence in each line. */
  lines: string[];
  /** Those in use, and the best of each other number of devices. */
  placements: ServicePlacement[];
}

export interface ServiceList {
  services: Service[];
}

export interface ServicePlaced {
  /** Whether its speed for this service is measured. If not, predictions follow what it says of its own speed. */
  measured: boolean;
  name: string;
  node: number;
  parts: number;
}

/** Devices that keep a service ready together, or could; one device has all of it. */
export interface ServicePlacement {
  /** Answers that were measured. */
  answers: number;
  /** In the order in which requests go through them. */
  devices: ServicePlaced[];
  /** Of requests that were the only one at work. */
  measuredMs: number | null;
  predictedMs: number | null;
  /** It is the one in use. */
  used: boolean;
}

/** Devices that keep one service ready together. */
export interface ServiceSplit {
  /** The same on the fastest device alone, if it fits there. */
  aloneMs: number | null;
  /** Counts the changes of who is in it. */
  epoch: number;
  /** What a request should take, by what was known when the devices were chosen. */
  predictedMs: number;
  ready: boolean;
  /** Requests that are on their way through it. */
  running: number;
  /** All of them compute each request together, each a share of all of it; otherwise they do so one after another. */
  sideBySide: boolean;
  /** In the order in which requests go through them. */
  stages: ServiceStage[];
}

/** One of them. */
export interface ServiceStage {
  /** Milliseconds of computing for one request, and of waiting before it, on average. */
  computeMs: number | null;
  /** Requests that went through since the devices last changed. */
  done: number;
  /** The first of its parts, counted from 0, and how many it has. */
  firstPart: number;
  /** Bytes handed to the next device for one request. */
  handOnBytes: number | null;
  /** Bytes of memory that they take. */
  memory: number;
  name: string;
  node: number;
  parts: number;
  ready: boolean;
  /** Milliseconds until the next device says that it has them. */
  travelMs: number | null;
  /** How they travel: `direct` or `relay`. */
  via: string | null;
  waitMs: number | null;
}

/** How much of a job one node did. */
export interface Share {
  items: number;
  name: string;
  node: number;
  units: number;
}

/** A receipt and who signed it. */
export interface SignedReceipt {
  /** The coordinator's public key, 64 hexadecimal digits. */
  key: string;
  receipt: Receipt;
  /** Ed25519, 128 hexadecimal digits, of the words `shoal receipt 1`, a zero byte and the BLAKE3 hash of `receipt`
   * as JSON without spaces and with sorted keys. */
  signature: string;
}

/** How a simulation gets on. */
export interface SimInfo {
  crew: CrewInfo | null;
  halo: number;
  height: number;
  /** Numbers in a cell. */
  lanes: number;
  /** What the members made of all cells, if the job asks for it: the last there is. */
  reduced: SimTotal | null;
  /** `f32`, `i32` or `u32`. */
  scalar: string;
  /** Steps that all members have done. */
  step: number;
  steps: number;
  width: number;
}

/** All cells brought together, each number of a cell by itself. */
export interface SimTotal {
  how: Reduce;
  /** Of the state after so many steps. */
  step: number;
  /** One for each number of a cell; `null` for what is not a finite number. */
  values: (number | null)[];
}

/** A file of the data folder. */
export interface StoredFile {
  /** From the data folder on, parts of the path divided by `/`. */
  file: string;
  /** What counts of it, in order. */
  parts: StoredPart[];
}

/** Consecutive bytes of a file. */
export interface StoredPart {
  offset: number;
  size: number;
}

export interface SubmitJobAnswer {
  jobId: number;
  /** `submitted`, or with `?wait` how it ended: `done`, `failed`, `cancelled`. */
  status: string;
}

export interface TileList {
  tiles: number[];
}

export interface Trust {
  /** Wrong too often: it gets no more of this work. */
  barred: boolean;
  /** Right answers in a row. */
  streak: number;
  /** Right so often that only some answers are checked. */
  veteran: boolean;
  /** Wrong answers not yet made up for. */
  wrong: number;
}

/** How a node's answers turned out so far, by kind of work. */
export interface Trusts {
  cpu: Trust;
  gpu: Trust;
}

export interface Unit {
  len: number;
  node?: number;
  start: number;
  state: UnitState;
}

export interface UnitList {
  /** Whether there are more than are shown. */
  truncated: boolean;
  units: Unit[];
}

export type UnitState = "waiting" | "leased" | "done";

/** How much of an upload is held so far. */
export interface UploadOffset {
  offset: number;
}
