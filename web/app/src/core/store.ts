/** What the coordinator last said, as signals: the one place live data enters the pages. */

import type { Job, PoolNode, PoolInfo, Shoal } from "@shoal/sdk";
import { ShoalError } from "@shoal/sdk";

import { signal } from "../view/reactive";

export type LinkState = "connecting" | "live" | "lost" | "refused";

/** First and longest wait before the event stream is opened again. */
const RETRY_FIRST = 500;
const RETRY_LONGEST = 8_000;

export interface Store {
  shoal: Shoal;
  link: () => LinkState;
  pool: () => PoolInfo | null;
  nodes: () => readonly PoolNode[];
  /** Newest first. */
  jobs: () => readonly Job[];
  /** A job as just answered to a request, ahead of the next event. */
  learn(job: Job): void;
  forget(id: number): void;
  close(): void;
}

export function openStore(shoal: Shoal): Store {
  const link = signal<LinkState>("connecting");
  const pool = signal<PoolInfo | null>(null);
  const nodes = signal<readonly PoolNode[]>([]);
  const jobs = signal<readonly Job[]>([]);
  const closing = new AbortController();

  const learnAll = (changed: Job[]) => jobs.update((old) => merge(old, changed));

  const refresh = async () => {
    const [info, nodeList, jobList] = await Promise.all([
      shoal.pool(),
      shoal.nodes(),
      shoal.jobs(),
    ]);
    pool.set(info);
    nodes.set(nodeList);
    jobs.set(merge([], jobList));
  };

  const follow = async () => {
    let wait = RETRY_FIRST;
    while (!closing.signal.aborted) {
      try {
        await refresh();
        link.set("live");
        wait = RETRY_FIRST;
        await shoal.events({ jobs: learnAll, nodes: nodes.set }, closing.signal);
      } catch (error) {
        if (error instanceof ShoalError && (error.status === 401 || error.status === 403)) {
          link.set("refused");
          return;
        }
      }
      if (closing.signal.aborted) return;
      link.set("lost");
      await pause(wait, closing.signal);
      wait = Math.min(wait * 2, RETRY_LONGEST);
    }
  };
  void follow();

  return {
    shoal,
    link,
    pool,
    nodes,
    jobs,
    learn: (job) => learnAll([job]),
    forget: (id) => jobs.update((old) => old.filter((job) => job.id !== id)),
    close: () => closing.abort(),
  };
}

function merge(old: readonly Job[], changed: readonly Job[]): readonly Job[] {
  const all = new Map(old.map((job) => [job.id, job]));
  for (const job of changed) all.set(job.id, job);
  return [...all.values()].sort((a, b) => b.id - a.id);
}

function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
}
