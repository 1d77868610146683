/** What the coordinator's HTTP API takes and says. Most of it is made from Rust, in `api/`; here is what TypeScript can
 * say more exactly, and what only the SDK has. */

import type { CommonRequest } from "./api/requests.js";

export type * from "./api/answers.js";
export type * from "./api/requests.js";

/** A kind of work, such as "map" or "exec". A newer coordinator may know more of them than this SDK. */
export type JobKind = string;
/** How answers are checked. `none`: not at all. `spot`: a fraction of the units, chosen at random. `quorum:N`: N nodes of
 * different owners must agree on every unit. `adaptive`: every answer of a new node, and fewer the longer it is right. */
export type Verify = "none" | "spot" | `spot:${number}` | `quorum:${number}` | "adaptive";

export type ParamValue = number | boolean | readonly number[];
/** Values for a kernel's parameter block, by member name. */
export type Params = Readonly<Record<string, ParamValue>>;

/** What may be said of any job. The SDK signs the code with the connection's own key unless there is a `signature`. */
export type CommonOptions = CommonRequest;
