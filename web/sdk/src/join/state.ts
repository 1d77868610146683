/** What the brain's phase means to the donor. */

import type { BrainStatus } from "../workers/messages.js";
import type { JoinStatus } from "./types.js";

export function stateOf(phase: BrainStatus["phase"]): JoinStatus["state"] {
  switch (phase) {
    case "idle":
      return "starting";
    case "connecting":
    case "greeting":
      return "connecting";
    default:
      return phase;
  }
}
