/** Where a model runs next: decided from what was measured, with the reason in words. Pure: time is an argument. */

import type { Place } from "./types.js";

/** How much better the other place must be before a model moves: measures vary. */
const MARGIN = 0.85;
/** The part of a new measure in the running mean. */
const NEWEST = 0.3;
/** The other place is measured again after this time, if it could be better: networks and loads change. */
const AGAIN_MS = 20_000;
/** A place this many times slower is not measured again. */
const HOPELESS = 4;
/** How long a place that failed is left alone, the first time and at most. */
const AWAY_FIRST_MS = 2_000;
const AWAY_LONGEST_MS = 60_000;
/** The part of a budget that the first place always has. */
const LEAST_SHARE = 0.25;

/** What is known of a place. */
export interface Known {
  /** The mean of whole runs there, upload and all. */
  ms: number | undefined;
  /** When it was last measured. */
  at: number;
  /** It failed: why, until when nobody asks again, and how often in a row. */
  trouble: string | undefined;
  awayUntil: number;
  fails: number;
}

export interface Choice {
  place: Place;
  why: string;
}

/** `none`: nobody has begun to load it into this page. */
export type Loaded = "none" | "loading" | "ready";

export function unknown(): Known {
  return { ms: undefined, at: -Infinity, trouble: undefined, awayUntil: 0, fails: 0 };
}

export function measured(known: Known, now: number, ms: number): Known {
  const mean = known.ms === undefined ? ms : known.ms * (1 - NEWEST) + ms * NEWEST;
  return { ms: mean, at: now, trouble: undefined, awayUntil: 0, fails: 0 };
}

/** `isFinal`: it will not be otherwise later. */
export function failed(known: Known, now: number, trouble: string, isFinal: boolean): Known {
  const pause = Math.min(AWAY_FIRST_MS * 2 ** known.fails, AWAY_LONGEST_MS);
  return { ...known, trouble, fails: known.fails + 1, awayUntil: isFinal ? Infinity : now + pause };
}

export const other = (place: Place): Place => (place === "local" ? "remote" : "local");

export function choose(now: number, places: Record<Place, Known>, loaded: Loaded, last: Place | undefined): Choice {
  const { local, remote } = places;
  const isAway = (known: Known) => known.awayUntil > now;
  if (isAway(remote) && !isAway(local)) return { place: "local", why: `the pool does not answer: ${remote.trouble}` };
  if (isAway(local)) return { place: "remote", why: local.trouble ?? "this browser cannot run it" };
  if (loaded !== "ready") return { place: "remote", why: "this page is still loading the model" };
  if (remote.ms === undefined) return { place: "remote", why: "measuring the pool" };
  if (local.ms === undefined) return { place: "local", why: "measuring this device" };
  const here = last ?? (local.ms <= remote.ms ? "local" : "remote");
  const there = other(here);
  const [mine, theirs] = [places[here].ms ?? 0, places[there].ms ?? 0];
  const compared = `${Math.round(local.ms)} ms on this device, ${Math.round(remote.ms)} ms on the pool`;
  if (theirs < mine * MARGIN) return { place: there, why: `faster: ${compared}` };
  const isOld = now - places[there].at > AGAIN_MS && theirs < mine * HOPELESS;
  if (isOld) return { place: there, why: `measuring again: ${compared}` };
  return { place: here, why: `${mine <= theirs ? "faster" : "about as fast"}: ${compared}` };
}

/** What the first place gets of a budget, so that the other one can still answer within it. */
export function share(leftMs: number, otherMs: number | undefined, isOtherReady: boolean): number {
  if (!isOtherReady || leftMs === Infinity) return leftMs;
  if (otherMs === undefined) return leftMs / 2;
  return Math.max(leftMs - otherMs / MARGIN, leftMs * LEAST_SHARE);
}
