/** A module that may stop: by a panic, or because memory ran out. Then its Worker is to be replaced. */

import { UnitError } from "./failure.js";
import { say } from "./engine.js";
import type { UnitFailure } from "./messages.js";

export class Guard {
  /** Nothing can be computed any more. */
  isBroken = false;

  constructor(
    /** What it panicked with, if it did. */
    private readonly panicked: () => string | undefined,
  ) {}

  /** Computes, and notes if the module stops. `does` says what at. */
  readonly whole = <T>(does: string, compute: () => T): T => {
    try {
      return compute();
    } catch (error) {
      // What the module says itself is a plain object.
      if (!(error instanceof Error)) throw error;
      this.isBroken = true;
      throw new UnitError(this.stopped(String(error), does));
    }
  };

  /** The same for what may take its time. */
  readonly later = async <T>(does: string, compute: () => T | Promise<T>): Promise<T> => {
    try {
      return await compute();
    } catch (error) {
      return this.whole<T>(does, () => {
        throw error;
      });
    }
  };

  /** A native node may do better in all cases. */
  private stopped(error: string, does: string): UnitFailure {
    if (this.panicked() !== undefined) return { kind: "unable", message: `the engine panicked when it ${does}` };
    // That is how Rust ends when there is no memory, in all browsers' words.
    if (/unreachable/i.test(error)) return { kind: "oom", message: "a module in a browser has at most 4 GiB" };
    return { kind: "unable", message: `this browser stopped the engine when it ${does}: ${error}` };
  }
}

/** Computes under the unit's time limit. */
export function timed<T>(attempt: number, compute: () => T): T {
  say({ type: "clock", attempt });
  try {
    return compute();
  } finally {
    say({ type: "rest", attempt });
  }
}

/** The same for what is awaited. */
export async function timedLater<T>(attempt: number, compute: () => Promise<T>): Promise<T> {
  say({ type: "clock", attempt });
  try {
    return await compute();
  } finally {
    say({ type: "rest", attempt });
  }
}
