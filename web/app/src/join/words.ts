/** Plain words for a donor. */

import type { JoinStatus, RunningUnit } from "@shoal/sdk";

import { shortKey } from "../core/format";
import type { Stage } from "./lending";

const KINDS: Record<RunningUnit["kind"], string> = {
  noop: "empty units, to measure the pool",
  map: "numbers through a GPU kernel",
  render: "tiles of a picture on the GPU",
  exec: "a program in a sandbox",
  sim: "a part of a simulation, together with others",
};

export function kindWords(kind: RunningUnit["kind"]): string {
  return KINDS[kind];
}

/** Who stands for the code that runs. */
export function signerWords(signer: string | undefined, signedHere: boolean | undefined): string {
  if (signer === undefined) return "no code, so nobody signed";
  return signedHere === true
    ? `signed by the coordinator itself (${shortKey(signer)})`
    : `signed with the key ${shortKey(signer)}`;
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
      return status.running.length > 0 || status.crews.length > 0 ? "Lending, at work" : "Lending, waiting for work";
    case "paused":
      return `Resting: ${status.reason ?? "paused"}`;
    case "waiting":
      return "The coordinator cannot be reached. Trying again by itself.";
    case "stopped":
      return "Stopped";
  }
}
