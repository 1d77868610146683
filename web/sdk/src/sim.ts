/** Simulations: what is asked for, how they get on, and a look at the field. */

import type { Source } from "./blobs.js";
import type { Http } from "./http.js";
import type { CommonOptions, Params } from "./types.js";

/** The grid and one step of it. */
interface Steps {
  /** One WGSL module: its entry points are the passes of a step; `init` and `show` are special. */
  source: string;
  /** Cells of a row. */
  width: number;
  height: number;
  steps: number;
  /** Rows above and below a band that one step reads; what the file says in `// halo: 2` without it. */
  halo?: number;
  /** One step, as `advect,jacobi*10,project`; what the file says, or all passes in order, without it. */
  passes?: string;
  params?: Params;
  /** Exactly so many nodes; as many as make it fastest without it. */
  members?: number;
  /** Steps between two checkpoints, 0 for none; what a few seconds bring without it. */
  keepEvery?: number;
  /** Go on with guessed rows of neighbours where true ones are late, and correct what was guessed wrong. */
  speculate?: boolean;
  /** At every checkpoint and at the end the members bring all cells together, each number of a cell by itself. */
  reduce?: Reduce;
}

/** What becomes of all cells. */
export type Reduce = "sum" | "min" | "max" | "mean";

export interface SimRequest extends Steps {
  kind: "sim";
  /** Hash of the first state's bytes; what `init` makes, or zeros, without it. */
  first?: string;
}

export interface SimOptions extends CommonOptions, Steps {
  /** The first state, row by row. */
  first?: Source;
}

/** How a simulation gets on. */
export interface SimInfo {
  width: number;
  height: number;
  steps: number;
  /** Steps that all members have done. */
  step: number;
  halo: number;
  /** Numbers in a cell. */
  lanes: number;
  scalar: string;
  /** What the members made of all cells, if the job asks for it: the last there is. */
  reduced: SimTotal | null;
  crew: CrewInfo | null;
}

/** All cells brought together, each number of a cell by itself. */
export interface SimTotal {
  how: Reduce;
  /** Of the state after so many steps. */
  step: number;
  /** One for each number of a cell; `null` for what is not a finite number. */
  values: (number | null)[];
}

/** The nodes that compute it together. */
export interface CrewInfo {
  /** Counts changes of membership. */
  epoch: number;
  state: "forming" | "working";
  members: CrewMember[];
  /** Nodes that could step in. */
  spares: number;
  predictedStepMs: number | null;
  stepMs: number | null;
  /** What a step should take on the fastest node alone, if the grid fits there. */
  aloneStepMs: number | null;
  /** Steps of the newest whole checkpoint. */
  keptStep: number;
  changes: { at: number; epoch: number; what: string }[];
}

export interface CrewMember {
  node: number;
  name: string;
  /** The first of its rows, and how many they are. */
  rows: [number, number];
  step: number;
  computedMs: number;
  waitedMs: number;
  guessed: number;
  corrected: number;
  links: CrewLink[];
}

export interface CrewLink {
  with: number;
  via: "relay" | "direct";
  roundTripMs: number;
  bytesPerSecond: number | null;
  /** Lost chunks of a million. */
  loss: number;
  relayed: number;
  direct: number;
}

/** A stroke over the field, in cells. */
export interface Poke {
  at: [number, number];
  by?: [number, number];
  radius?: number;
  strength?: number;
}

/** A picture of the field. */
export interface Field {
  /** Give it to the next call, which then waits for a newer one. */
  version: number;
  step: number;
  width: number;
  height: number;
  /** RGBA, row by row. */
  pixels: Uint8ClampedArray<ArrayBuffer>;
}

/** Nothing if no newer picture came within some seconds, or the job ended. */
export async function fieldOf(http: Http, id: number, after: number, signal?: AbortSignal): Promise<Field | undefined> {
  const headers = { accept: "application/octet-stream" };
  const answer = await http.call(`/api/v1/jobs/${id}/field?after=${after}`, { headers, signal });
  if (answer.status === 204) return undefined;
  const said = (name: string) => Number(answer.headers.get(`x-shoal-${name}`));
  const pixels = new Uint8ClampedArray(await answer.arrayBuffer());
  return { version: said("version"), step: said("step"), width: said("width"), height: said("height"), pixels };
}
