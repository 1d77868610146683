/** Growing counters turned into rates over time, for charts. */

import type { Signal } from "../view/reactive";
import { signal } from "../view/reactive";

/** Samples kept: two minutes at one a second. */
const KEEP = 120;
/** A rate is taken over this many readings, because units arrive in lumps. */
const WINDOW = 3;
/** After a pause this long nothing is known about the time between. */
const GAP = 5_000;

export interface Sample {
  /** Milliseconds since the epoch. */
  time: number;
  /** Per second, by series id. */
  rates: ReadonlyMap<number, number>;
}

export interface Series {
  samples: () => readonly Sample[];
  /**
   * Takes note of the counters as they are now. While nothing moves no samples are made: a chart that
   * crawls along at zero says nothing.
   */
  push(time: number, counters: ReadonlyMap<number, number>): void;
}

interface Reading {
  time: number;
  counters: ReadonlyMap<number, number>;
}

export function series(): Series {
  const samples: Signal<readonly Sample[]> = signal<readonly Sample[]>([]);
  const readings: Reading[] = [];
  let resting = true;
  const add = (sample: Sample) => samples.update((old) => [...old.slice(1 - KEEP), sample]);
  return {
    samples,
    push(time, counters) {
      const last = readings.at(-1);
      if (last && time - last.time > GAP) readings.length = 0;
      readings.push({ time, counters });
      if (readings.length > WINDOW + 1) readings.shift();
      const first = readings[0];
      if (!first || !last || first.time >= time) return;
      const rates = ratesBetween(first, { time, counters });
      const moves = [...rates.values()].some((rate) => rate > 0);
      if (!moves && resting) return;
      // From rest the curve rises from zero, not from where it was last seen.
      if (resting) add({ time: last.time, rates: new Map() });
      add({ time, rates });
      resting = !moves;
    },
  };
}

function ratesBetween(from: Reading, to: Reading): Map<number, number> {
  const seconds = (to.time - from.time) / 1000;
  const rates = new Map<number, number>();
  for (const [id, value] of to.counters) {
    rates.set(id, Math.max(0, value - (from.counters.get(id) ?? 0)) / seconds);
  }
  return rates;
}
