/** Numbers, times and sizes as people read them. */

import { KINDS, type JobKind } from "@shoal/sdk";

const UNITS = ["", "k", "M", "G", "T", "P"];

/** 1234567 → "1.23 M" */
export function count(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) < 10_000) {
    return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 10 ? 1 : 0 });
  }
  let power = 0;
  while (Math.abs(value) >= 999.5 && power < UNITS.length - 1) {
    value /= 1000;
    power += 1;
  }
  return `${significant(value)} ${UNITS[power]}`;
}

export function rate(perSecond: number): string {
  return `${count(perSecond)}/s`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} B`;
  const names = ["KiB", "MiB", "GiB", "TiB"];
  let power = -1;
  while (value >= 1023.5 && power < names.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${significant(value)} ${names[power]}`;
}

/** Seconds in words short enough for a table: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min". */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.5) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "0 %";
  const share = (100 * part) / whole;
  // Rounded down: 100 % is said of what is complete.
  const shown =
    share < 10 || (share > 99 && share < 100) ? Math.floor(share * 10) / 10 : Math.floor(share);
  return `${shown} %`;
}

/** Without the smaller part: "3 min ago" says enough. */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, (now - then) / 1000);
  return seconds < 5 ? "just now" : `${duration(seconds).replace(/ \d+ (s|min)$/, "")} ago`;
}

export function clock(milliseconds: number): string {
  return new Date(milliseconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** What one item of a job is called. */
export function items(n: number, kind: JobKind): string {
  return plural(n, told(kind)?.item ?? "item", told(kind)?.items ?? "items");
}

/** What a kind says of itself; nothing if it is newer than this page. */
export function told(kind: JobKind): { donor: string; item: string; items: string } | undefined {
  return Object.hasOwn(KINDS, kind) ? KINDS[kind as keyof typeof KINDS] : undefined;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Enough of a key or hash to tell it from others at a glance: "3f9a02c1…77be". */
export function shortKey(hex: string): string {
  return `${hex.slice(0, 8)}…${hex.slice(-4)}`;
}

function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}
