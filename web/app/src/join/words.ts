/** Plain words for a donor. */

import type { JoinStatus, RunningUnit } from "@shoal/sdk";

import { shortKey, told } from "../core/format";
import type { Stage } from "./lending";

export function kindWords(kind: RunningUnit["kind"]): string {
  return told(kind)?.donor ?? kind;
}

/** Who stands for the code that runs. */
export function signerWords(signer: string | undefined, signedHere: boolean | undefined): string {
  if (signer === undefined) return "no code, so no signature";
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
      return status.reason === "paused by you" ? "Paused by you" : `Paused: ${status.reason ?? "no reason given"}`;
    case "waiting":
      return "Cannot reach the coordinator. Trying again automatically.";
    case "stopped":
      return "Stopped";
  }
}
