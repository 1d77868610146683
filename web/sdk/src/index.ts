/**
 * Shoal for JavaScript.
 *
 * ```js
 * import { connect } from "http://127.0.0.1:7420/assets/sdk.js";
 * const shoal = await connect("http://127.0.0.1:7420", key);
 * const out = await shoal.map({ wgsl, input: new Float32Array(1 << 20) });
 * ```
 */

export { Answers, type LeftContent } from "./answers.js";
export type { ArrayOf, OutType, ResultArray } from "./arrays.js";
export type { Bytes, UploadOptions } from "./blobs.js";
export * from "./client.js";
export { KINDS } from "./constants.js";
export { ShoalError } from "./http.js";
export { JobHandle, type JobOutcome } from "./job.js";
export {
  join,
  type CrewNote,
  type JobNote,
  type JoinHandle,
  type JoinOptions,
  type JoinStatus,
  type Lend,
  type LinkNote,
  type Rules,
  type RunningUnit,
  type ServiceNote,
  type UnitEvent,
} from "./join/index.js";
export { Model } from "./models/model.js";
export type * from "./models/types.js";
export { npyHeader, npyType, readNpy, type Npy, type NpyArrays, type NpyType } from "./npy.js";
export type * from "./numbers/types.js";
export { type Picture, toImageData } from "./picture.js";
export { shelf } from "./shelf.js";
export type * from "./sim.js";
export type * from "./types.js";
