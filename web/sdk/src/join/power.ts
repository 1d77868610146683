/** When a device rests, by the donor's wish and by how it is doing. */

import type { Condition } from "../workers/messages.js";
import type { Circumstances } from "./circumstances.js";
import type { Lent } from "./types.js";

/** Below this the person may need what is left. */
const LOW_BATTERY_PERCENT = 30;

/** What a donor lends who said nothing: the power saver is on. */
export const USUAL: Lent = {
  cpu: 0.5,
  gpu: true,
  onlyPluggedIn: false,
  whenHidden: "pause",
  onLowBattery: "pause",
};

/** Why nothing is lent now, in words for the donor. */
export function restReason({ hidden, frozen, battery }: Circumstances, lend: Lent): string | undefined {
  const draining = battery && !battery.charging ? battery.percent : undefined;
  if (lend.onlyPluggedIn && draining !== undefined) return "on battery";
  if (lend.onLowBattery === "pause" && draining !== undefined && draining < LOW_BATTERY_PERCENT) {
    return `the battery is at ${draining} %`;
  }
  if (frozen) return "the browser put this page to sleep";
  if (hidden && lend.whenHidden === "pause") return "this page is in the background";
  return undefined;
}

/** What the coordinator should know. */
export function conditionOf({ hidden, frozen, battery, metered }: Circumstances): Condition {
  const condition: Condition = { visible: !hidden && !frozen, charging: battery?.charging ?? false, metered };
  if (battery) condition.batteryPercent = battery.percent;
  return condition;
}
