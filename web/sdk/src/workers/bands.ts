/** Bands of simulations on the GPU: one for each crew this node computes in. */

import type { Engine, SimBand, Simulation } from "../../generated/gpu/gpu.js";
import { MAX_VIEW_SIDE } from "../constants.js";
import { type Blobs, type StoredBlob, UnitError } from "./blobs.js";
import { asFailure, say } from "./engine.js";
import type { BrainJob, SimAnswer, SimCommand, ToSim } from "./messages.js";

/** Rows fetched at a time have at most so many bytes (or are one): the GPU takes them from this memory. */
const PIECE = 16 << 20;

type SimJob = Extract<BrainJob["work"], { width: number }>;
type Jobs = (job: number) => BrainJob | undefined;
type Open = SimCommand & { do: "open" };

interface Row {
  start: number;
  len: number;
}

/** What a crew has here. */
interface Place {
  /** Commands are done one after the other. */
  line: Promise<void>;
  /** Ends what an older epoch waits for. */
  abort: AbortController;
  epoch: number;
  job: number;
  rows: Row;
  band?: SimBand;
}

export class Bands {
  private readonly programs = new Map<number, Promise<Simulation>>();
  private readonly places = new Map<number, Place>();

  constructor(
    private readonly engine: Engine,
    private readonly blobs: Blobs,
  ) {}

  hear(ask: ToSim, jobs: Jobs): void {
    switch (ask.type) {
      case "audition":
        void this.audition(ask.crew, ask.job, jobs);
        break;
      case "sim":
        this.queue(ask.crew, ask.command, jobs);
        break;
      case "leave":
        this.leave(ask.crew);
        break;
    }
  }

  forget(job: number): void {
    const program = this.programs.get(job);
    this.programs.delete(job);
    void program?.then((program) => program.free()).catch(() => undefined);
  }

  private async audition(crew: number, job: number, jobs: Jobs): Promise<void> {
    try {
      const program = await this.program(job, jobs);
      const { cells, took } = await program.time();
      say({ type: "auditioned", crew, heard: { cells, took } });
    } catch (error) {
      say({ type: "auditioned", crew, heard: { failure: asFailure(error) } });
    }
  }

  private queue(crew: number, command: SimCommand, jobs: Jobs): void {
    const before = this.places.get(crew);
    if (command.do === "open") before?.abort.abort();
    const place = before ?? { line: Promise.resolve(), abort: new AbortController(), epoch: 0, job: 0, rows: { start: 0, len: 0 } };
    this.places.set(crew, place);
    place.line = place.line.then(async () => {
      try {
        await this.run(crew, place, command, jobs);
      } catch (error) {
        // What was asked in an older epoch is nobody's concern any more.
        if (command.epoch === place.epoch) answer(crew, { is: "failed", epoch: place.epoch, failure: asFailure(error) });
      }
    });
  }

  private async run(crew: number, place: Place, command: SimCommand, jobs: Jobs): Promise<void> {
    if (command.do === "open") return this.open(crew, place, command, jobs);
    const { band, epoch } = place;
    if (!band || command.epoch !== epoch) return;
    switch (command.do) {
      case "step": {
        const began = performance.now();
        const edges = await band.step(command.step, command.above, command.below, command.poke);
        tellEdges(crew, epoch, command.step + 1, edges, began);
        break;
      }
      case "back":
        band.back();
        break;
      case "keep": {
        const rows = await this.rows(place, band);
        await this.reduce(crew, place, command.step, rows.bytes, jobs);
        const store = async () => {
          const kept = await this.blobs.put(`/node/kept/${crew}/${epoch}`, rows.bytes, "storing a checkpoint", place.abort.signal);
          const { hash, size } = (await kept.json()) as StoredBlob;
          answer(crew, { is: "kept", epoch, step: command.step, hash, size });
        };
        this.later(crew, place, store, rows.release);
        break;
      }
      case "finish": {
        const rows = await this.rows(place, band);
        await this.reduce(crew, place, command.step, rows.bytes, jobs);
        const unit = { job: place.job, attempt: command.attempt };
        const deliver = async () => {
          const result = await this.blobs.deliver(unit, rows.bytes, place.abort.signal);
          answer(crew, { is: "final", epoch, result });
        };
        this.later(crew, place, deliver, rows.release);
        break;
      }
      case "show":
        await this.show(crew, place, band, command.step, jobs);
        break;
    }
  }

  private async open(crew: number, place: Place, command: Open, jobs: Jobs): Promise<void> {
    const { epoch, job, start, len, step, kept, apart } = command;
    place.band?.free();
    delete place.band;
    const abort = new AbortController();
    Object.assign(place, { abort, epoch, job, rows: { start, len } });
    const program = await this.program(job, jobs);
    const began = performance.now();
    const band = await program.open(start, len, apart);
    // Left meanwhile.
    if (this.places.get(crew) !== place) return band.free();
    place.band = band;
    const { first, height } = workOf(job, jobs);
    if (kept.length > 0) {
      for (const part of kept) await this.load(band, place, part, part, abort.signal);
    } else if (first && step === 0) {
      await this.load(band, place, { start: 0, len: height }, first, abort.signal);
    } else {
      await band.init();
    }
    tellEdges(crew, epoch, step, await band.edges(), began);
  }

  /** Those rows of a blob that are in the band. */
  private async load(band: SimBand, { rows }: Place, has: Row, blob: StoredBlob, signal: AbortSignal): Promise<void> {
    const each = blob.size / has.len;
    const atOnce = Math.max(1, Math.floor(PIECE / each));
    const end = Math.min(rows.start + rows.len, has.start + has.len);
    for (let row = Math.max(rows.start, has.start); row < end; row += atOnce) {
      const until = Math.min(end, row + atOnce);
      const bytes = await this.blobs.part(blob, (row - has.start) * each, (until - has.start) * each, signal);
      band.load(row, bytes);
    }
  }

  /** All rows of the band as they are now. */
  private async rows({ rows }: Place, band: SimBand): Promise<{ bytes: Uint8Array<ArrayBuffer>; release: () => void }> {
    const outcome = await band.read(rows.start, rows.len);
    return { bytes: outcome.view() as Uint8Array<ArrayBuffer>, release: () => outcome.free() };
  }

  /** What the rows come to, if the job asks for that; some rows at a time, because they are copied. */
  private async reduce(crew: number, place: Place, step: number, bytes: Uint8Array, jobs: Jobs): Promise<void> {
    const program = await this.program(place.job, jobs);
    const each = bytes.byteLength / place.rows.len;
    const atOnce = Math.max(1, Math.floor(PIECE / each)) * each;
    const all: number[] = [];
    for (let at = 0; at < bytes.byteLength; at += atOnce) {
      const some = program.reduce(bytes.subarray(at, at + atOnce));
      if (!some) return;
      for (const number of some) all.push(number);
    }
    answer(crew, { is: "reduced", epoch: place.epoch, step, rows: Float64Array.from(all) });
  }

  /** Bytes travel while the next steps are made. */
  private later(crew: number, { epoch, abort }: Place, act: () => Promise<void>, release: () => void): void {
    act()
      .catch((error: unknown) => {
        if (!abort.signal.aborted) answer(crew, { is: "failed", epoch, failure: asFailure(error) });
      })
      .finally(release);
  }

  private async show(crew: number, place: Place, band: SimBand, step: number, jobs: Jobs): Promise<void> {
    const { width, height } = workOf(place.job, jobs);
    const stride = Math.max(1, Math.ceil(Math.max(width, height) / MAX_VIEW_SIDE));
    const { epoch, rows, abort } = place;
    const picture = await band.show(stride);
    const query = new URLSearchParams({
      firstRow: String(rows.start),
      rows: String(rows.len),
      step: String(step),
      stride: String(stride),
    });
    const bytes = picture.view() as Uint8Array<ArrayBuffer>;
    // Nobody misses one picture of many.
    const put = this.blobs.put(`/node/view/${crew}?${query}`, bytes, "sending a picture", abort.signal).catch(() => undefined);
    void put.then(() => answer(crew, { is: "shown", epoch })).finally(() => picture.free());
  }

  private leave(crew: number): void {
    const place = this.places.get(crew);
    this.places.delete(crew);
    place?.abort.abort();
    void place?.line.then(() => place.band?.free());
  }

  private program(job: number, jobs: Jobs): Promise<Simulation> {
    let program = this.programs.get(job);
    if (!program) {
      program = this.engine.sim(workOf(job, jobs).bytes);
      program.catch(() => this.programs.delete(job));
      this.programs.set(job, program);
    }
    return program;
  }
}

function workOf(job: number, jobs: Jobs): SimJob {
  const work = jobs(job)?.work;
  if (work && "width" in work) return work;
  throw new UnitError({ kind: "internal", message: `job ${job} is no simulation known here` });
}

function tellEdges(crew: number, epoch: number, step: number, edges: { view(): Uint8Array; free(): void }, began: number): void {
  const both = edges.view();
  const half = both.byteLength / 2;
  const [top, bottom] = [both.slice(0, half), both.slice(half)];
  edges.free();
  const took = performance.now() - began;
  answer(crew, { is: "edges", epoch, step, top, bottom, took } as SimAnswer, [top.buffer, bottom.buffer]);
}

function answer(crew: number, answer: SimAnswer, transfer: Transferable[] = []): void {
  say({ type: "simmed", crew, answer }, transfer);
}
