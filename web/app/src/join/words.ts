/** Plain words for a donor. */

import type { JoinStatus, RunningUnit } from "@shoal/sdk";

import type { Stage } from "./lending";

const KINDS: Record<RunningUnit["kind"], string> = {
  noop: "empty units, to measure the pool",
  map: "numbers through a GPU kernel",
  render: "tiles of a picture on the GPU",
  exec: "a program in a sandbox",
};

export function kindWords(kind: RunningUnit["kind"]): string {
  return KINDS[kind];
}

/** One line on how things stand. */
export function stateWords(stage: Stage, status: JoinStatus | null): string {
  if (stage === "off") return "Not lending";
  if (stage === "starting" || !status) return "Starting";
  switch (status.state) {
    case "starting":
      return "Starting";
    case "connecting":
      return "Connecting to the coordinator";
    case "joined":
      return status.running.length > 0 ? "Lending, at work" : "Lending, waiting for work";
    case "paused":
      return `Resting: ${status.reason ?? "paused"}`;
    case "waiting":
      return "The coordinator cannot be reached. Trying again by itself.";
    case "stopped":
      return "Stopped";
  }
}
