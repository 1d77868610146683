/** What the donor chose and what ran, kept on this device only. */

import type { Lend } from "@shoal/sdk";

import type { Entry } from "./ledger";
import type { Chosen } from "./rules";
import { readChosen } from "./rules";

const CHOICES = "shoal.lend";
const HISTORY = "shoal.history";
const RULES = "shoal.rules";

/** Memory is left open until the donor chooses: it depends on the device. */
export type Choices = Required<Omit<Lend, "memory">> & Pick<Lend, "memory">;

const FIRST: Choices = {
  cpu: 0.5,
  gpu: true,
  onlyPluggedIn: false,
  whenHidden: "pause",
  onLowBattery: "pause",
};

export function loadChoices(): Choices {
  const kept = load<Partial<Choices>>(CHOICES) ?? {};
  return { ...FIRST, ...kept };
}

export function saveChoices(choices: Choices): void {
  save(CHOICES, choices);
}

export function loadRules(): Chosen {
  return readChosen(load<Partial<Chosen>>(RULES));
}

export function saveRules(rules: Chosen): void {
  save(RULES, rules);
}

export function loadHistory(): Entry[] {
  return load<Entry[]>(HISTORY) ?? [];
}

export function saveHistory(entries: readonly Entry[]): void {
  save(HISTORY, entries);
}

export function clearHistory(): void {
  localStorage.removeItem(HISTORY);
}

function load<T>(key: string): T | null {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null") as T | null;
  } catch {
    // Unreadable or forbidden: as if nothing was kept.
    return null;
  }
}

function save(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage may be full or forbidden; the page works without.
  }
}
