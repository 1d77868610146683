/** Models that a Worker keeps loaded, one for each service or job. Several requests may wait for the same. */

import type { Task } from "./engine.js";

/** Models loaded at a time, as in a native node: the coordinator places no more services here than the donor's memory
 * holds, so this is only a last resort. */
const KEPT = 16;

interface Loaded {
  free(): void;
}

export class Kept<M extends Loaded> {
  /** The one used last comes last. */
  private readonly loaded = new Map<number, M>();
  private readonly loading = new Map<number, Promise<void>>();

  constructor(
    /** Loads a model, without the task's signal: other requests wait for the same. Nothing if it is not wanted any more. */
    private readonly load: (task: Task, isWanted: () => boolean) => Promise<M | undefined>,
  ) {}

  /** What it resolves to must be used at once: models that are loaded later push others out. */
  async ready(task: Task): Promise<M> {
    const { job } = task.unit;
    for (;;) {
      const model = this.loaded.get(job);
      if (model) {
        this.loaded.delete(job);
        this.loaded.set(job, model);
        return model;
      }
      const loading = this.loading.get(job) ?? this.begin(task);
      this.loading.set(job, loading);
      await loading.finally(() => this.loading.get(job) === loading && this.loading.delete(job));
      task.signal.throwIfAborted();
    }
  }

  get all(): [number, M][] {
    return [...this.loaded];
  }

  forget(job: number): void {
    this.loading.delete(job);
    this.loaded.get(job)?.free();
    this.loaded.delete(job);
  }

  private async begin(task: Task): Promise<void> {
    const { job } = task.unit;
    // The service may leave meanwhile, or leave and come again.
    const isWanted = () => this.loading.has(job) && !this.loaded.has(job);
    const model = await this.load(task, isWanted);
    if (!model) return;
    if (!isWanted()) return model.free();
    this.loaded.set(job, model);
    for (const [oldest] of this.loaded) {
      if (this.loaded.size <= KEPT) break;
      this.forget(oldest);
    }
  }
}
