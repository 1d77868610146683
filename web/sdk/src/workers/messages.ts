/** What the page, the brain Worker and the engine Workers say to each other. */

import type { JobNote, UnitNote } from "../join/unit.js";
import type { CrewNote } from "../join/crew.js";
import type { StoredBlob } from "./failure.js";
import type { RadioCall } from "./radio-words.js";
import type { Means } from "./runtime/words.js";
import type { SimCommand, StageCommand } from "../../generated/crew/crew.js";
import type { BrainJob, BrainStatus, Condition, KernelInput, KernelWork, Offer, Rules, RuntimeOffer, UnitFailure } from "../../generated/brain/brain.js";

export type { BrainJob, BrainStatus, Condition, KernelInput, KernelWork, Offer, Rules, SimCommand, StageCommand, UnitFailure };

/** Where Workers find their code and the coordinator. */
export interface Places {
  /** The coordinator's address without a slash at the end. */
  base: string;
  brainWasm: string;
  gpuWasm: string;
  /** Fetched when a model is to be kept ready, each for its own sort. */
  onnxWasm: string;
  llmWasm: string;
  llmGpuWasm: string;
  /** Fetched when the node is asked into a crew. */
  crewModule: string;
  crewWasm: string;
  /** URLs a Worker may start: of the own origin, or of a blob. */
  gpuWorker: string;
  wasiWorker: string;
  onnxWorker: string;
  llmWorker: string;
  llmGpuWorker: string;
  /** Started when pieces of a blob are kept; it may be of another site. */
  keepWorker: string;
}

export interface Start {
  type: "start";
  places: Places;
  token: string;
  identity: Identity;
  offer: Offer;
  rules: Rules;
  state: DeviceState;
  /** Whether it is to take part in crews that are formed without asking first. */
  together: boolean;
}

/** Who the node is: a key pair whose private half stays in the browser. */
export interface Identity {
  publicKey: Uint8Array;
  privateKey: CryptoKey;
}

/** How the device is doing, and whether the donor wants it to rest then. One message, so that the coordinator hears
 * both before a page that hides is slowed. */
export interface DeviceState {
  condition: Condition;
  paused: boolean;
}

/** From the page to the brain Worker. */
export type ToBrain =
  | Start
  | { type: "offer"; offer: Offer }
  | { type: "rules"; rules: Rules }
  | { type: "state"; state: DeviceState }
  | { type: "stop" };

/** From the brain Worker to the page. */
export type FromBrain =
  | { type: "status"; status: BrainStatus }
  | { type: "started"; unit: UnitNote }
  | { type: "ended"; attempt: number; failure?: UnitFailure; revoked?: true }
  /** A job's code is not what was signed: none of its units runs here. */
  | { type: "refused"; job: JobNote; message: string }
  /** The GPU stopped answering (why), or answers again. */
  | { type: "gpu"; problem?: string }
  | { type: "crews"; crews: CrewNote[] }
  | RadioCall
  | { type: "stopped"; reason?: string };

export interface UnitSpan {
  attempt: number;
  job: number;
  start: number;
  len: number;
  /** What is asked, of a request to a service. */
  body?: Uint8Array;
  /** The same of a page that talks to a language model alone: as OpenAI's API takes it, as JSON. */
  chat?: string;
  /** Nothing is computed: what a service's requests need is made ready. */
  warms?: boolean;
}

/** From the brain Worker to an engine Worker. */
export type ToEngine =
  /** `hashing`: the brain's code, compiled once for all. `blobs`: where they are, if a page runs a model for itself, whose
   * `session` is then its key. `means`: what models may use. */
  | { type: "open"; base: string; wasm: string; hashing: WebAssembly.Module; session: string; blobs?: string; means?: Means }
  /** The donor lends this from now on. */
  | { type: "means"; means: Means }
  | { type: "session"; session: string }
  /** Before the first unit of a job. */
  | { type: "job"; job: number; info: BrainJob }
  | { type: "run"; unit: UnitSpan }
  | { type: "abort"; attempt: number }
  | { type: "forget"; job: number }
  /** The answer to `need`: the blob is on the shelf, or cannot be had that way. */
  | { type: "had"; hash: string }
  /** An answer to `seek`: a piece that is right. */
  | { type: "found"; seek: number; piece: number; bytes: Uint8Array<ArrayBuffer> }
  /** Another: these are to come from the coordinator. */
  | { type: "stream"; seek: number; pieces: number[] }
  | ToSim
  | ToStage;

/** From an engine Worker to the brain Worker. */
export type FromEngine =
  /** The engine is open; a GPU tells which way it rounds, if it can. */
  | { type: "ready"; class?: string }
  /** It cannot be opened: the device is missing or does not answer. */
  | { type: "broken"; message: string }
  /** Models can be run by another engine than the one built in, or not any more. */
  | { type: "runtime"; offer?: RuntimeOffer }
  /** So much of a model's file is here. */
  | { type: "loading"; job: number; bytes: number }
  /** Some words of the answer to a chat. */
  | { type: "said"; attempt: number; part: SaidPart }
  /** All of a blob is needed that other devices may have. */
  | { type: "need"; blob: { hash: string; size: number } }
  /** Some pieces of it are needed: from `first` on, before `end`. `hashes` are those of all its pieces. */
  | { type: "seek"; seek: number; blob: StoredBlob; first: number; end: number; hashes: Uint8Array }
  /** One that came from the coordinator, and has its hash. */
  | { type: "keep"; seek: number; piece: number; bytes: Uint8Array<ArrayBuffer> }
  /** All of them came, or nobody waits for them any more. */
  | { type: "sought"; seek: number }
  | FromSim
  | FromStage
  | AboutUnit;

/** As `LanguageSaid` of the engine's module. */
export interface SaidPart {
  text: string;
  finish?: "stop" | "length";
  promptTokens?: number;
  answerTokens?: number;
  promptMs?: number;
  answerMs?: number;
  cachedTokens?: number;
  logprobs?: SaidChance[];
}

export interface SaidChance {
  token: string;
  logprob: number;
  bytes: number[];
  top: Omit<SaidChance, "top">[];
}

export type AboutUnit =
  /** The clock of the time limit starts anew: a kernel was submitted, or the program begins an item. */
  | { type: "clock"; attempt: number; item?: number }
  /** Nothing of this unit computes any more. */
  | { type: "rest"; attempt: number }
  /** The end of what a program wrote to stderr so far. */
  | { type: "stderr"; attempt: number; tail: string }
  /** A part of the answer to a request, while the program goes on. */
  | { type: "part"; attempt: number; bytes: Uint8Array<ArrayBuffer> }
  /** `by`: which engine answered, where there are several. */
  | { type: "done"; attempt: number; took: number; result: UnitResult; by?: string }
  /** `fatal`: the Worker is of no more use and must be replaced. */
  | { type: "failed"; attempt: number; took: number; failure: UnitFailure; fatal?: true };

export type UnitResult = { inline: Uint8Array<ArrayBuffer> } | { hash: string; size: number };

/** From the brain Worker to the one that keeps pieces, which answers each but the first. */
export type ToKeeper =
  | { type: "open"; base: string; hashing: WebAssembly.Module }
  | { type: "read"; id: number; blob: StoredBlob; piece: number }
  | { type: "put"; id: number; blob: StoredBlob; piece: number; bytes: Uint8Array<ArrayBuffer>; hash: Uint8Array }
  /** After what was put before; then others can open its files. */
  | { type: "close"; id: number; blob: StoredBlob };

/** `bytes`: what was to be read, if it is there and right. `has`: the pieces there are now, if this Worker has the files open. */
export interface FromKeeper {
  id: number;
  bytes: Uint8Array<ArrayBuffer> | undefined;
  has: Uint32Array | undefined;
}

/** From the brain Worker to the GPU Worker, for a simulation. */
export type ToSim =
  /** How long does a step take here? */
  | { type: "audition"; crew: number; job: number }
  /** Commands of a crew are done in order. */
  | { type: "sim"; crew: number; command: SimCommand }
  /** The crew's band is not needed any more. */
  | { type: "leave"; crew: number };

/** What it answers. */
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

/** From the brain Worker to the models' Worker, for parts of a model that a crew keeps ready. */
export type ToStage =
  /** Commands of a crew are done in order. */
  | { type: "stage"; crew: number; command: StageCommand }
  /** The crew's parts are not needed any more. */
  | { type: "unstage"; crew: number };

/** What it answers. `fatal`: the Worker is of no more use and must be replaced. */
export interface FromStage {
  type: "staged";
  crew: number;
  answer: StageAnswer;
  fatal?: true;
}

/** The answer to a command. */
export type StageAnswer = { epoch: number } & (
  | { is: "loaded" }
  | { is: "made"; call: number; output: Uint8Array<ArrayBuffer>; took: number }
  | { is: "notMade"; call: number; failure: UnitFailure }
  /** `made` is for the crew's member to read. `usual`: it says how fast this device is. */
  | { is: "turned"; made: Uint8Array<ArrayBuffer>; took: number; usual: boolean }
  | { is: "failed"; failure: UnitFailure }
);
