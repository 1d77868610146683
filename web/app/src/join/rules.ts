/** For whom this device works: the donor's choice by key. Pure. */

import type { Rules } from "@shoal/sdk";

import type { Entry } from "./ledger";

/** The rules with what was known of each key when it was named. */
export interface Chosen extends Rules {
  notes: Record<string, string>;
}

export const EVERYBODY: Chosen = { only: [], never: [], notes: {} };

/** Somebody whose work ran here, or whose key the donor named. */
export interface Signer {
  key: string;
  /** What ran for them, newest first. */
  note: string;
  isCoordinator: boolean;
  verdict: "runs" | "only" | "never" | "left out";
}

/** Jobs named in a note. */
const MOST_NAMED = 3;

/** In an order that does not change with what runs: a row that moved would lose the keyboard. */
export function signers(chosen: Chosen, history: readonly Entry[]): Signer[] {
  const seen = history.flatMap(({ signer }) => signer ?? []);
  const named = [...chosen.only, ...chosen.never];
  return [...new Set([...named, ...seen])].sort().map((key) => ({
    key,
    note: noteOf(key, history) || (chosen.notes[key] ?? ""),
    isCoordinator: history.some((entry) => entry.signer === key && entry.signedHere === true),
    verdict: verdictOn(chosen, key),
  }));
}

/** With the key named so, or with nothing said of it. */
export function decide(
  chosen: Chosen,
  key: string,
  verdict: "only" | "never" | "free",
  note: string,
): Chosen {
  const others = (keys: readonly string[]) => keys.filter((one) => one !== key);
  const { [key]: _, ...notes } = chosen.notes;
  return {
    only: [...others(chosen.only), ...(verdict === "only" ? [key] : [])],
    never: [...others(chosen.never), ...(verdict === "never" ? [key] : [])],
    notes: verdict === "free" ? notes : { ...notes, [key]: note },
  };
}

/** What is kept may be anything; only keys can be named. */
export function readChosen(kept: Partial<Chosen> | null): Chosen {
  const keys = (list: unknown) => (Array.isArray(list) ? list.filter(isKey) : []);
  return { only: keys(kept?.only), never: keys(kept?.never), notes: kept?.notes ?? {} };
}

export function isKey(text: unknown): text is string {
  return typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
}

function verdictOn({ only, never }: Rules, key: string): Signer["verdict"] {
  if (never.includes(key)) return "never";
  if (only.includes(key)) return "only";
  return only.length > 0 ? "left out" : "runs";
}

function noteOf(key: string, history: readonly Entry[]): string {
  const theirs = history.filter((entry) => entry.signer === key);
  const words = theirs.map(
    ({ name, job, owner }) => `${name || `job ${job}`}${owner ? ` for ${owner}` : ""}`,
  );
  return [...new Set(words)].slice(0, MOST_NAMED).join(", ");
}
