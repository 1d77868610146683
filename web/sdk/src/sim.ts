/** Simulations: what is asked for, and a look at the field. */

import type { Source } from "./blobs.js";
import type { Http } from "./http.js";
import type { CommonOptions, SimRequest } from "./types.js";

/** The grid, one step of it, and what is asked for beside it. */
export interface SimOptions extends CommonOptions, Omit<SimRequest, "kind" | "first"> {
  /** The first state, row by row. */
  first?: Source;
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
