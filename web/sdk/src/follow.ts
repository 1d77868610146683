/** Waiting for a job. */

import type { JobEvents } from "./client.js";
import { ShoalError } from "./http.js";
import type { RenderRunOptions } from "./options.js";
import { PATIENCE_MS } from "./patience.js";
import type { Job } from "./types.js";

const BETWEEN_MS = 250;

interface Pool {
  job(id: number): PromiseLike<Job>;
  jobEvents(id: number, on: JobEvents, signal?: AbortSignal): Promise<void>;
  cancel(id: number): Promise<Job>;
}

/** Follows a job to its end, through restarts of the coordinator. Throws if it failed or was cancelled. */
export async function toTheEnd(pool: Pool, job: Job, { onProgress, onTiles, signal }: RenderRunOptions): Promise<Job> {
  const cancel = () => void pool.cancel(job.id).catch(() => undefined);
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel, { once: true });
  const on: JobEvents = {
    job: (changed) => {
      job = changed;
      onProgress?.(changed);
    },
    tiles: (tiles) => onTiles?.(tiles, job.id),
  };
  let heard = Date.now();
  while (job.state === "running") {
    try {
      await pool.jobEvents(job.id, on, signal);
      heard = Date.now();
      if (job.state === "running") on.job?.(await pool.job(job.id));
    } catch (error) {
      const reached = error instanceof ShoalError && error.status !== 0 && error.status < 500;
      if (reached || Date.now() - heard > PATIENCE_MS) throw error;
    }
    signal?.throwIfAborted();
    if (job.state === "running") await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS));
  }
  signal?.removeEventListener("abort", cancel);
  signal?.throwIfAborted();
  if (job.state === "done") return job;
  const message = job.error?.message ?? `job ${job.id} was ${job.state}`;
  throw new ShoalError(0, `job_${job.state}`, message, { job });
}
