/**
 * Shoal for JavaScript.
 *
 * ```js
 * import { connect } from "http://127.0.0.1:7420/assets/sdk.js";
 * const shoal = await connect("http://127.0.0.1:7420", key);
 * const out = await shoal.map({ wgsl, input: new Float32Array(1 << 20) });
 * ```
 */

export { Answers } from "./answers";
export type { ArrayOf, OutType, ResultArray } from "./arrays";
export type { Bytes, UploadOptions } from "./blobs";
export * from "./client";
export { ShoalError } from "./http";
export {
  join,
  type JoinHandle,
  type JoinOptions,
  type JoinStatus,
  type Lend,
  type RunningUnit,
  type UnitEvent,
} from "./join";
export { type Picture, toImageData } from "./picture";
export type * from "./types";
