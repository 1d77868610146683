/** What ran here, by job: for whom, how much, how fast. Pure; events and time come from outside. */

import type { JobNote, RunningUnit, UnitEvent } from "@shoal/sdk";

export interface Entry {
  /** Tells the same job number apart on another day or coordinator. */
  id: string;
  job: number;
  name: string;
  owner: string;
  /** The key that stands for its code. */
  signer?: string;
  /** Whether that is the coordinator's own. */
  signedHere?: boolean;
  kind: RunningUnit["kind"];
  units: number;
  failed: number;
  items: number;
  /** Milliseconds at work, units at the same time counted each. */
  work: number;
  first: number;
  last: number;
  problem: string;
}

export interface Active {
  entry: Entry;
  running: number;
  /** Items per second lately. */
  rate: number;
}

/** A job still counts as active this long after its last unit here, so that short units do not flicker. */
const LINGER = 2_500;
/** The stretch over which a rate is measured. */
const WINDOW = 8_000;
/** Entries kept; the oldest go first. */
const KEEP = 40;

export class Ledger {
  private readonly running = new Map<number, RunningUnit>();
  private readonly recent: { job: number; time: number; items: number }[] = [];
  private readonly current = new Map<number, Entry>();

  constructor(private entries: Entry[] = []) {}

  record(event: UnitEvent, now: number): void {
    const { unit } = event;
    const entry = this.entryOf(unit, now);
    entry.last = now;
    if (event.type === "started") {
      this.running.set(unit.attempt, unit);
      return;
    }
    this.running.delete(unit.attempt);
    entry.work += Math.max(0, now - unit.since);
    if (event.type === "finished") {
      entry.units += 1;
      entry.items += unit.len;
      this.recent.push({ job: unit.job, time: now, items: unit.len });
    } else if (event.type === "failed") {
      entry.failed += 1;
      entry.problem = event.message;
    }
  }

  /** Code that is not what somebody signed came, and did not run. */
  refuse(job: JobNote, message: string, now: number): void {
    const entry = this.entryOf(job, now);
    entry.last = now;
    entry.problem = `Refused: ${message}`;
  }

  /** Nothing runs any more; what comes next is another stay. */
  end(): void {
    this.running.clear();
    this.recent.length = 0;
    this.current.clear();
  }

  active(now: number): Active[] {
    while ((this.recent[0]?.time ?? now) < now - WINDOW) this.recent.shift();
    return [...this.current.values()]
      .map((entry) => ({
        entry: { ...entry },
        running: this.runningOf(entry.job),
        rate: this.rateOf(entry, now),
      }))
      .filter(({ entry, running }) => running > 0 || now - entry.last < LINGER);
  }

  /** Newest first. */
  history(): Entry[] {
    return this.entries.map((entry) => ({ ...entry })).sort((a, b) => b.last - a.last);
  }

  private entryOf(unit: JobNote, now: number): Entry {
    const known = this.current.get(unit.job);
    if (known) return known;
    const { job, owner, kind, signer, signedHere } = unit;
    const id = `${now} ${job}`;
    const entry: Entry = {
      id,
      job,
      name: unit.jobName,
      owner,
      kind,
      units: 0,
      failed: 0,
      items: 0,
      work: 0,
      first: now,
      last: now,
      problem: "",
    };
    if (signer !== undefined) Object.assign(entry, { signer, signedHere });
    this.current.set(job, entry);
    this.entries = [...this.entries, entry].slice(-KEEP);
    return entry;
  }

  private runningOf(job: number): number {
    let sum = 0;
    for (const unit of this.running.values()) if (unit.job === job) sum += 1;
    return sum;
  }

  private rateOf(entry: Entry, now: number): number {
    const seconds = Math.min(WINDOW, Math.max(1_000, now - entry.first)) / 1000;
    const items = this.recent.reduce(
      (sum, one) => sum + (one.job === entry.job ? one.items : 0),
      0,
    );
    return items / seconds;
  }
}
