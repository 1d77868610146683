/** Keeps one job up to date for as long as its page is open. */

import type { Job } from "@shoal/sdk";

import type { Store } from "../../core/store";
import { effect, onCleanup, signal, untracked } from "../../view/reactive";

type TileListener = (tiles: readonly number[]) => void;

/** Wait before a broken stream is opened again. */
const RETRY = 1_000;

export interface Followed {
  job: () => Job | null;
  problem: () => unknown;
  onTiles(listener: TileListener): void;
}

export function follow(store: Store, id: number): Followed {
  const job = signal<Job | null>(
    untracked(() => store.jobs().find((one) => one.id === id) ?? null),
  );
  const problem = signal<unknown>(null);
  const listeners = new Set<TileListener>();
  const stop = new AbortController();
  onCleanup(() => stop.abort());

  const learn = (next: Job) => {
    job.set(next);
    store.learn(next);
  };
  const watch = async () => {
    while (!stop.signal.aborted) {
      try {
        learn(await store.shoal.job(id));
        if (job()?.state !== "running") return;
        const on = {
          job: learn,
          tiles: (tiles: number[]) => listeners.forEach((tell) => tell(tiles)),
        };
        await store.shoal.jobEvents(id, on, stop.signal);
      } catch (error) {
        if (stop.signal.aborted) return;
        problem.set(error);
        if (job() === null) return;
      }
      if (job()?.state !== "running") return;
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  };
  void watch();

  // What the pool's stream says counts too: it is there while this job's own stream is being reopened.
  effect(() => {
    const heard = store.jobs().find((one) => one.id === id);
    const known = untracked(job);
    if (heard && known && heard.itemsDone >= known.itemsDone && known.state === "running")
      job.set(heard);
  });

  return {
    job,
    problem,
    onTiles: (listener) => {
      listeners.add(listener);
      onCleanup(() => listeners.delete(listener));
    },
  };
}
