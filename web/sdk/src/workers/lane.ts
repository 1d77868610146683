/** Engine Workers of one kind: started when first needed, ended when they run away, replaced. */

import type {
  AboutUnit,
  BrainJob,
  FromEngine,
  ToEngine,
  UnitFailure,
  UnitResult,
  UnitSpan,
} from "./messages.js";
import type { StoredBlob } from "./failure.js";
import { SimWatch } from "./sim-watch.js";
import type { FromSim, ToSim } from "./sim-words.js";
import { Watch } from "./watch.js";

export interface LaneConfig {
  /** Where the Worker's code is, and its WebAssembly if it has any. */
  worker: string;
  wasm: string;
  base: string;
  /** The brain's code, for its hash function. */
  hashing: WebAssembly.Module;
  /** Units given to one Worker at a time. */
  depth: number;
  /** Whether a Worker listens while it computes. A program's does not: to end its run is to end it. */
  listens: boolean;
  session: () => string;
  info: (job: number) => BrainJob | undefined;
  onDone: (attempt: number, took: number, result: UnitResult) => void;
  onFailed: (attempt: number, took: number, failure: UnitFailure) => void;
  /** Whether Workers of this kind can be opened, when that becomes known, and a GPU's numeric class. */
  onHealth: (problem: string | undefined, probed: string | undefined) => void;
  /** A Worker needs a blob that devices give each other; resolves when it need not wait any more. */
  onNeed: (blob: StoredBlob) => Promise<void>;
  onSim: (said: FromSim) => void;
  /** A Worker with bands of simulations is gone. */
  onSimsLost: (why: string) => void;
}

/** A kernel that nobody waits for any more may take this long before its Worker goes. */
const ABORT_MS = 2_000;
/** A device that does not open in this time is given up; a slow phone on a slow network needs some seconds. */
const OPEN_MS = 15_000;

interface Seat {
  worker: Worker;
  watch: Watch;
  opening: ReturnType<typeof setTimeout> | undefined;
  jobs: Set<number>;
  units: Map<number, UnitSpan>;
  sims: SimWatch;
  /** The unit that computes now, and for programs which item. */
  busy: { attempt: number; item?: number; since: number } | undefined;
  stderr: string;
}

export class Lane {
  private readonly seats: Seat[] = [];
  private most = Infinity;
  /** The last unit that ran away: a device that does not open after it is still busy with it. */
  private runaway: { job: number; failure: UnitFailure } | undefined;

  constructor(private readonly config: LaneConfig) {}

  /** The brain gives no more units at a time than were offered, so a seat is always found or made. */
  run(unit: UnitSpan): void {
    const free = this.seats.find((seat) => seat.units.size < this.config.depth);
    this.give(free ?? this.open(), unit);
  }

  /** Ends a unit at once. What a GPU computes cannot be ended, so it gets a moment to end by itself. */
  abort(attempt: number): void {
    const seat = this.seats.find((seat) => seat.units.has(attempt));
    if (!seat) return;
    seat.units.delete(attempt);
    if (!this.config.listens) return this.replace(seat);
    this.tell(seat, { type: "abort", attempt });
    if (seat.busy?.attempt === attempt) seat.watch.start(ABORT_MS);
  }

  /** Opens a Worker to see whether it can be. */
  probe(): void {
    if (this.seats.length === 0) this.open();
  }

  forget(job: number): void {
    for (const seat of this.seats) {
      if (seat.jobs.delete(job)) this.tell(seat, { type: "forget", job });
    }
  }

  sessionChanged(): void {
    for (const seat of this.seats) this.tell(seat, { type: "session", session: this.config.session() });
  }

  /** Keeps at most this many Workers: those without work go now, the others when they are done. */
  limit(most: number): void {
    this.most = most;
    this.trim();
  }

  private trim(): void {
    for (const seat of this.seats.filter(({ units, sims }) => units.size === 0 && !sims.isBusy)) {
      if (this.seats.length <= this.most) return;
      this.close(seat);
    }
  }

  close(seat?: Seat, why = "the GPU is not lent any more"): void {
    for (const each of seat ? [seat] : [...this.seats]) {
      each.watch.stop();
      clearTimeout(each.opening);
      each.worker.terminate();
      this.seats.splice(this.seats.indexOf(each), 1);
      if (each.sims.close()) this.config.onSimsLost(why);
    }
  }

  private open(): Seat {
    const seat: Seat = {
      worker: new Worker(this.config.worker, { type: "module" }),
      watch: new Watch(() => this.overTime(seat)),
      opening: setTimeout(() => this.broken(seat, "it does not answer"), OPEN_MS),
      jobs: new Set(),
      units: new Map(),
      sims: new SimWatch(
        (job) => this.config.info(job)?.limits.time ?? 0,
        () => seat.busy !== undefined,
        () => this.simOverTime(seat),
      ),
      busy: undefined,
      stderr: "",
    };
    seat.worker.onmessage = ({ data }: MessageEvent<FromEngine>) => this.hear(seat, data);
    seat.worker.onerror = (event) => {
      event.preventDefault();
      this.broken(seat, event.message || "its code could not be loaded");
    };
    this.seats.push(seat);
    const { base, wasm, hashing } = this.config;
    this.tell(seat, { type: "open", base, wasm, hashing, session: this.config.session() });
    return seat;
  }

  private give(seat: Seat, unit: UnitSpan): void {
    if (!this.tellJob(seat, unit.job)) {
      const message = `job ${unit.job} is unknown`;
      this.config.onFailed(unit.attempt, 0, { kind: "internal", message });
      return;
    }
    seat.units.set(unit.attempt, unit);
    this.tell(seat, { type: "run", unit });
  }

  /** Whether the job is known. */
  private tellJob(seat: Seat, job: number): boolean {
    if (seat.jobs.has(job)) return true;
    const info = this.config.info(job);
    if (!info) return false;
    seat.jobs.add(job);
    this.tell(seat, { type: "job", job, info });
    return true;
  }

  /** Bands of simulations live in the Worker beside the units. */
  sim(ask: ToSim, job: number, transfer: Transferable[]): void {
    const seat = ask.type === "leave" ? this.seats[0] : (this.seats[0] ?? this.open());
    if (!seat || !this.tellJob(seat, job)) return;
    seat.sims.asked(ask, job);
    seat.worker.postMessage(ask, transfer);
    if (ask.type === "leave") this.trim();
  }

  private hear(seat: Seat, said: FromEngine): void {
    if (said.type === "ready") {
      clearTimeout(seat.opening);
      this.runaway = undefined;
      this.config.onHealth(undefined, said.class);
    } else if (said.type === "broken") {
      this.broken(seat, said.message);
    } else if (said.type === "need") {
      const { hash } = said.blob;
      void this.config.onNeed(said.blob).finally(() => this.tell(seat, { type: "had", hash }));
    } else if (said.type === "simmed" || said.type === "auditioned") {
      seat.sims.heard(said);
      this.config.onSim(said);
      if (isLost(said)) this.replace(seat);
      this.trim();
    } else {
      this.hearOfUnit(seat, said);
    }
  }

  private hearOfUnit(seat: Seat, said: AboutUnit): void {
    // Also of a unit that was aborted: its clock must stop.
    if (said.type === "rest" || said.type === "done" || said.type === "failed") this.rest(seat, said.attempt);
    const unit = seat.units.get(said.attempt);
    if (!unit) return;
    switch (said.type) {
      case "clock": {
        const { time } = this.config.info(unit.job)?.limits ?? { time: 0 };
        seat.busy = { attempt: said.attempt, since: performance.now() };
        if (said.item !== undefined) seat.busy.item = said.item;
        seat.stderr = "";
        seat.watch.start(time);
        break;
      }
      case "rest":
        break;
      case "stderr":
        seat.stderr = said.tail;
        break;
      case "done":
        seat.units.delete(said.attempt);
        this.trim();
        this.config.onDone(said.attempt, said.took, said.result);
        break;
      case "failed":
        seat.units.delete(said.attempt);
        if (said.fatal) this.replace(seat);
        this.trim();
        this.config.onFailed(said.attempt, said.took, said.failure);
        break;
    }
  }

  private rest(seat: Seat, attempt: number): void {
    if (seat.busy?.attempt !== attempt) return;
    seat.busy = undefined;
    seat.watch.stop();
  }

  private overTime(seat: Seat): void {
    const { busy, stderr } = seat;
    const unit = busy && seat.units.get(busy.attempt);
    if (!unit) return this.replace(seat);
    seat.units.delete(unit.attempt);
    const allowed = (this.config.info(unit.job)?.limits.time ?? 0) * 1_000;
    const failure: UnitFailure = { kind: "time", message: "", allowed, stderr };
    if (busy.item !== undefined) failure.item = busy.item;
    this.runaway = { job: unit.job, failure };
    this.replace(seat);
    // Whether the device came out of it should be known before the next unit asks.
    this.probe();
    this.config.onFailed(unit.attempt, performance.now() - busy.since, failure);
  }

  private simOverTime(seat: Seat): void {
    this.replace(seat, "a step of the simulation took longer than its job's time limit");
    this.probe();
  }

  /** Ends a Worker and gives its other units to a new one. */
  private replace(seat: Seat, why = "the GPU had to be opened anew"): void {
    this.close(seat, why);
    for (const unit of seat.units.values()) this.run(unit);
  }

  private broken(seat: Seat, message: string): void {
    this.close(seat, message);
    this.config.onHealth(message, undefined);
    for (const { attempt, job } of seat.units.values()) {
      const { runaway } = this;
      const failure = runaway?.job === job ? runaway.failure : ({ kind: "lost", message } as const);
      this.config.onFailed(attempt, 0, failure);
    }
  }

  private tell(seat: Seat, message: ToEngine): void {
    seat.worker.postMessage(message);
  }
}

/** A device that is gone is opened anew. */
function isLost(said: FromSim): boolean {
  const told = said.type === "simmed" ? said.answer : said.heard;
  return "failure" in told && (told.failure.kind === "lost" || told.failure.kind === "internal");
}
