/** The GPU Worker: kernels over WebGPU. The next unit's bytes travel while this one computes. */

import init, { Engine, type KeptInput, type Part, type Program } from "../../generated/gpu/gpu.js";
import { Bands } from "./bands.js";
import { type Blobs, type StoredBlob, UnitError } from "./blobs.js";
import { type Computed, type Computer, say, serve, type Task } from "./engine.js";
import type { BrainJob, KernelInput, KernelWork, ToSim, UnitSpan } from "./messages.js";

/** What the GPU holds for a job. */
interface OnGpu {
  program: Promise<Program>;
  /** Inputs that every unit reads, by position. */
  kept: Map<number, Promise<KeptInput>>;
}

class GpuComputer implements Computer {
  private readonly jobs = new Map<number, OnGpu>();
  private readonly line = new Line();
  private readonly bands: Bands;

  constructor(
    private readonly engine: Engine,
    private readonly blobs: Blobs,
    readonly probed: string | undefined,
  ) {
    this.bands = new Bands(engine, blobs);
  }

  sim(ask: ToSim, jobs: (job: number) => BrainJob | undefined): void {
    this.bands.hear(ask, jobs);
  }

  async prepare({ unit, info }: Task): Promise<void> {
    await this.job(unit.job, info).program;
  }

  async compute({ unit, info, signal }: Task): Promise<Computed> {
    const job = this.job(unit.job, info);
    const { inputs } = kernelOf(info);
    const parts = await allOrFree(inputs.map((input, at) => this.part(job, unit, input, at, signal)));
    const program = await job.program;
    await this.line.enter(unit.attempt);
    try {
      if (signal.aborted) for (const part of parts) part.free();
      signal.throwIfAborted();
      const outcome = await this.engine.run(program, info.items, unit.start, unit.len, parts);
      return { bytes: outcome.view() as Uint8Array<ArrayBuffer>, release: () => outcome.free() };
    } finally {
      this.line.leave(unit.attempt);
    }
  }

  forget(id: number): void {
    this.bands.forget(id);
    const job = this.jobs.get(id);
    this.jobs.delete(id);
    const free = (kept: { free(): void }) => kept.free();
    void job?.program.then(free).catch(() => undefined);
    for (const kept of job?.kept.values() ?? []) void kept.then(free).catch(() => undefined);
  }

  private job(id: number, info: BrainJob): OnGpu {
    let job = this.jobs.get(id);
    if (!job) {
      job = { program: this.engine.prepare(kernelOf(info).bytes), kept: new Map() };
      // Told to each unit that waits for it.
      job.program.catch(() => undefined);
      this.jobs.set(id, job);
    }
    return job;
  }

  private async part(
    job: OnGpu,
    { job: id, start, len }: UnitSpan,
    { blob, perItem, reach = 0 }: KernelInput,
    at: number,
    signal: AbortSignal,
  ): Promise<Part> {
    if (perItem !== undefined) {
      const from = Math.max(start * perItem - reach, 0);
      const to = Math.min((start + len) * perItem + reach, blob.size);
      return this.send(id, blob, from, to, signal);
    }
    let kept = job.kept.get(at);
    if (!kept) {
      // Without a signal: other units wait for the same bytes.
      kept = this.send(id, blob, 0, blob.size).then((part) => this.engine.keep(part));
      kept.catch(() => job.kept.delete(at));
      job.kept.set(at, kept);
    }
    return (await kept).part();
  }

  /** Bytes of a blob go to the GPU piece by piece as they arrive. */
  private async send(
    job: number,
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<Part> {
    const part = await this.engine.stage(to - from);
    try {
      await this.blobs.stream(job, blob, from, to, (at, bytes) => part.write(at, bytes), signal);
    } catch (error) {
      part.free();
      throw error;
    }
    return part;
  }
}

/** Units handed to the GPU: one it computes, one that follows without a gap. */
const ON_GPU = 2;

/** The GPU computes one unit after the other, so each one's clock starts when the one before it is through. */
class Line {
  private readonly inside: number[] = [];
  private readonly waiting: (() => void)[] = [];

  async enter(attempt: number): Promise<void> {
    while (this.inside.length >= ON_GPU) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.inside.push(attempt);
    if (this.inside.length === 1) say({ type: "clock", attempt });
  }

  leave(attempt: number): void {
    const at = this.inside.indexOf(attempt);
    this.inside.splice(at, 1);
    say({ type: "rest", attempt });
    const [next] = this.inside;
    if (at === 0 && next !== undefined) say({ type: "clock", attempt: next });
    this.waiting.shift()?.();
  }
}

/** GPU memory is scarce: what arrived is freed at once if the rest did not. */
async function allOrFree(parts: Promise<Part>[]): Promise<Part[]> {
  try {
    return await Promise.all(parts);
  } catch (error) {
    for (const part of parts) part.then((part) => part.free()).catch(() => undefined);
    throw error;
  }
}

function kernelOf({ work }: BrainJob): KernelWork {
  if ("inputs" in work) return work;
  throw new UnitError({ kind: "internal", message: `a GPU unit of kind ${work.kind}` });
}

serve(
  async (blobs, wasm) => {
    await init({ module_or_path: wasm });
    const engine = await Engine.open();
    // A device that cannot run the probe may still run kernels: its answers are compared within tolerances.
    const probed = await engine.probe().catch(() => undefined);
    return new GpuComputer(engine, blobs, probed);
  },
  ({ kind }) => kind === "lost" || kind === "internal",
);
