/** A job by its number: what a page keeps over a reload, to come back to its result. */

import type { Answers } from "./answers.js";
import type { ResultArray } from "./arrays.js";
import type { RenderRunOptions } from "./options.js";
import type { Picture } from "./picture.js";
import type { Job } from "./types.js";

/** What a job gave, by its kind: an array of a map or a simulation, a picture, the answers of a program; else bytes. */
export type JobOutcome = ResultArray | Picture | Answers | Uint8Array<ArrayBuffer>;

/** What a handle needs of its connection. */
export interface JobPool {
  look(id: number): Promise<Job>;
  wait(id: number, run?: RenderRunOptions): Promise<Job>;
  outcome(job: Job, signal?: AbortSignal): Promise<JobOutcome>;
  cancel(id: number): Promise<Job>;
}

/** `await` gives the job as it is now. */
export class JobHandle implements Promise<Job> {
  readonly [Symbol.toStringTag] = "JobHandle";

  constructor(
    private readonly pool: JobPool,
    readonly id: number,
  ) {}

  // A handle is awaited for the job's state: each time anew, because it changes.
  then<A = Job, B = never>(
    done?: ((job: Job) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.pool.look(this.id).then(done, failed);
  }

  catch<B = never>(failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<Job | B> {
    return this.then(undefined, failed);
  }

  finally(over?: (() => void) | null): Promise<Job> {
    return this.pool.look(this.id).finally(over);
  }

  /** Waits for its end, through restarts of the coordinator. Throws if it failed or was cancelled. */
  wait(run?: RenderRunOptions): Promise<Job> {
    return this.pool.wait(this.id, run);
  }

  /** Waits for its end and fetches what it gave. */
  async result(run: RenderRunOptions = {}): Promise<JobOutcome> {
    return this.pool.outcome(await this.wait(run), run.signal);
  }

  cancel(): Promise<Job> {
    return this.pool.cancel(this.id);
  }
}
