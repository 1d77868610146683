/** How answers are checked and devices are doing, in plain words. Pure. */

import type { Job, PoolNode, Trust } from "@shoal/sdk";

import { count, duration, plural } from "./format";

/** Less is a device that is being held back; above it is noise. */
const SLOWED_PERCENT = 70;

/** What a job's policy means. */
export function verifyWords(verify: string): string {
  const [kind, figure] = verify.split(":");
  switch (kind) {
    case "none":
      return "Shoal checks nothing and believes every answer.";
    case "spot":
      return `A second device also computes ${spotShare(figure)} of the units, chosen at random.`;
    case "quorum":
      return `For every unit, ${figure ?? "several"} devices of different owners must give the same answer.`;
    case "adaptive":
      return "Other devices check every answer of a new device, and fewer the longer it is right. Your own devices are not checked.";
    default:
      return `Checked as “${verify}”.`;
  }
}

/** How a job's units were checked: a count and what it counts. Only what there is, in the words of `shoal explain`. */
export function checkedWords({ verify, unitsChecked, unitsOwn, unitsUnchecked }: Job): [number, string][] {
  const votes = /^quorum:(\d+)$/.exec(verify)?.[1];
  const all: [number, string][] = [
    [unitsChecked, votes === undefined ? "checked by another device" : `agreed by ${votes} devices`],
    [unitsOwn, "computed by your own devices, not checked"],
    [unitsUnchecked, "not checked"],
  ];
  return all.filter(([units]) => units > 0);
}

function spotShare(figure: string | undefined): string {
  const share = Number(figure ?? 0.1) * 100;
  return `${share.toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
}

/** Whether a device is believed, by the kinds of work it has done. */
export function trustWords({ trusted, trust }: PoolNode): string {
  if (trusted) return "your own device: not checked";
  const gpu = laneWords(trust.gpu);
  const cpu = laneWords(trust.cpu);
  if (gpu === null && cpu === null) return "new: every answer is checked";
  if (gpu === cpu || cpu === null) return gpu ?? "";
  return gpu === null ? cpu : `GPU ${gpu}; programs ${cpu}`;
}

export function isBarred({ trusted, trust }: PoolNode): boolean {
  return !trusted && (trust.gpu.barred || trust.cpu.barred);
}

function laneWords({ streak, wrong, barred }: Trust): string | null {
  if (barred) return `barred after ${plural(wrong, "wrong answer")}`;
  if (streak === 0 && wrong === 0) return null;
  const found = wrong > 0 ? `, ${count(wrong)} wrong before` : "";
  return `${count(streak)} right in a row${found}`;
}

/** What makes a device slower or costly now; empty if nothing does. */
export function conditionWords({ condition, pacePercent }: PoolNode): string {
  const { visible, batteryPercent, charging, metered } = condition;
  const words = [
    !visible && "tab hidden",
    batteryPercent !== null && !charging && `battery ${batteryPercent} %`,
    metered && "metered connection",
  ].filter((word) => word !== false);
  // Alone it says little: items of one job may differ a hundredfold.
  if (words.length > 0 && pacePercent < SLOWED_PERCENT) words.push(`slowed to ${pacePercent} %`);
  return words.join(", ");
}

export function roundTripWords(millis: number | null): string {
  if (millis === null) return "not measured yet";
  return millis < 1 ? "under 1 ms" : duration(millis / 1000);
}
