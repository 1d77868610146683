/** Engine Workers of one kind: started, fed and ended as the supervisor in the brain's module says, which decides when. */

import type { EngineFault, EngineOutput, Engines, RuntimeOffer } from "../../generated/brain/brain.js";
import type {
  AboutUnit,
  BrainJob,
  FromEngine,
  FromSim,
  FromStage,
  ToEngine,
  ToSim,
  ToStage,
  UnitFailure,
  UnitResult,
  UnitSpan,
} from "./messages.js";
import type { Means } from "./runtime/words.js";
import type { Pieces, Seek, Sought } from "./crews.js";
import type { StoredBlob } from "./failure.js";

/** What may be computed to make a service ready: a phone reads a model of some hundred megabytes in this time. Meanwhile the
 * coordinator asks another node. */
const WARM_MS = 60_000;

/** What fetching and loading parts of a model may take: other devices may send them over a slow line. */
const LOAD_MS = 600_000;

export interface LaneConfig {
  /** Says what to do with these Workers. */
  engines: Engines;
  /** Where the Worker's code is, and its WebAssembly if it has any. */
  worker: string;
  wasm: string;
  base: string;
  /** The brain's code, for its hash function. */
  hashing: WebAssembly.Module;
  session: () => string;
  info: (job: number) => BrainJob | undefined;
  onPart: (attempt: number, bytes: Uint8Array) => void;
  onDone: (attempt: number, took: number, result: UnitResult) => void;
  onFailed: (attempt: number, took: number, failure: UnitFailure) => void;
  /** Whether Workers of this kind can be opened, when that becomes known, and a GPU's numeric class. */
  onHealth: (problem: string | undefined, probed: string | undefined) => void;
  /** A Worker needs a blob that devices give each other; resolves when it need not wait any more. */
  onNeed: (blob: StoredBlob) => Promise<void>;
  /** A Worker needs some pieces of one. */
  onSeek: (pieces: Pieces, answer: Sought) => Seek;
  /** What its Workers may use beside their own thread, if they are told. */
  means?: () => Means;
  /** Models can be run by another engine than the one built in, or not any more. */
  onRuntime?: (offer: RuntimeOffer | undefined) => void;
  onSim: (said: FromSim) => void;
  onStage: (said: FromStage) => void;
}

interface Seat {
  worker: Worker;
  /** Jobs it was told of. */
  jobs: Set<number>;
  /** Pieces it waits for. */
  seeks: Map<number, Seek>;
  /** Of programs: which item runs now, and the end of what it wrote to stderr. */
  item: number | undefined;
  stderr: string;
}

export class Lane {
  private readonly seats = new Map<number, Seat>();
  /** Those that somebody waits for, and where they are. */
  private readonly units = new Map<number, { unit: UnitSpan; seat?: Seat }>();
  private readonly todo: (() => void)[] = [];
  private performing = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private wakes = Infinity;

  constructor(private readonly config: LaneConfig) {}

  run(unit: UnitSpan): void {
    const { attempt, job } = unit;
    const info = this.config.info(job);
    if (!info) {
      this.config.onFailed(attempt, 0, { kind: "internal", message: `job ${job} is unknown` });
      return;
    }
    this.units.set(attempt, { unit });
    // A limit is for requests, not for what is computed once for all of them.
    const limit = unit.warms ? WARM_MS : info.limits.time;
    this.supervise((engines, now) => engines.run(now, attempt, job, limit));
  }

  abort(attempt: number): void {
    if (this.units.delete(attempt)) this.supervise((engines, now) => engines.abort(now, attempt));
  }

  forget(job: number): void {
    for (const seat of this.seats.values()) {
      if (seat.jobs.delete(job)) tell(seat, { type: "forget", job });
    }
  }

  sessionChanged(): void {
    for (const seat of this.seats.values()) tell(seat, { type: "session", session: this.config.session() });
  }

  /** The jobs of the units that run, one for each unit. */
  get running(): number[] {
    return [...this.units.values()].filter(({ seat }) => seat !== undefined).map(({ unit }) => unit.job);
  }

  /** So many Workers are lent. */
  limit(most: number): void {
    this.supervise((engines, now) => engines.most(now, most));
  }

  close(): void {
    this.units.clear();
    this.supervise((engines, now) => engines.close(now));
  }

  /** Bands of simulations live in a GPU's Worker beside the units. */
  sim(ask: ToSim, job: number, transfer: Transferable[]): void {
    const { crew } = ask;
    const limit = this.config.info(job)?.limits.time ?? 0;
    if (ask.type === "leave") {
      this.supervise((engines, now) => engines.left(now, crew));
    } else if (ask.type === "audition") {
      this.supervise((engines, now) => engines.asked(now, crew, limit, undefined, false));
    } else if (ask.command.do === "open" || ask.command.do === "step") {
      const { epoch, do: what } = ask.command;
      this.supervise((engines, now) => engines.asked(now, crew, limit, epoch, what === "open"));
    }
    this.perform(() => {
      const [seat] = this.seats.values();
      if (seat && this.tellJob(seat, job)) seat.worker.postMessage(ask, transfer);
    });
  }

  /** Parts of models that crews keep ready live in the models' Worker beside whole ones. */
  stage(ask: ToStage, job: number, transfer: Transferable[]): void {
    const { crew } = ask;
    if (ask.type === "unstage") {
      this.supervise((engines, now) => engines.left(now, crew));
    } else if (ask.command.do !== "drop") {
      const { epoch, do: what } = ask.command;
      const limit = what === "load" ? LOAD_MS : (this.config.info(job)?.limits.time ?? 0);
      this.supervise((engines, now) => engines.asked(now, crew, limit, epoch, what === "load"));
    }
    this.perform(() => {
      const [seat] = this.seats.values();
      if (seat && this.tellJob(seat, job)) seat.worker.postMessage(ask, transfer);
    });
  }

  /** The donor lends something else. */
  meansChanged(): void {
    const means = this.config.means?.();
    if (means) for (const seat of this.seats.values()) tell(seat, { type: "means", means });
  }

  /** Tells the supervisor one thing, and does all it wants then. */
  private supervise(input: (engines: Engines, now: number) => EngineOutput[]): void {
    const outputs = input(this.config.engines, performance.now());
    this.perform(...outputs.map((output) => () => this.act(output)));
    this.wind();
  }

  /** In order, also when doing one thing leads to more. */
  private perform(...acts: (() => void)[]): void {
    this.todo.push(...acts);
    if (this.performing) return;
    this.performing = true;
    try {
      for (let act = this.todo.shift(); act; act = this.todo.shift()) act();
    } finally {
      this.performing = false;
    }
  }

  /** A timer that is early looks again: clocks are set anew for every item of a program, timers are not. */
  private wind(): void {
    const due = this.config.engines.nextTimeout() ?? Infinity;
    if (due >= this.wakes) return;
    clearTimeout(this.timer);
    this.wakes = due;
    const tick = () => {
      this.wakes = Infinity;
      this.supervise((engines, now) => engines.tick(now));
    };
    this.timer = setTimeout(tick, Math.max(0, due - performance.now()));
  }

  private act(output: EngineOutput): void {
    switch (output.type) {
      case "start":
        this.open(output.engine);
        break;
      case "kill":
        this.end(output.engine);
        break;
      case "give":
        this.give(output.engine, output.attempt);
        break;
      case "cancel": {
        const seat = this.seats.get(output.engine);
        if (seat) tell(seat, { type: "abort", attempt: output.attempt });
        break;
      }
      case "failed":
        this.failed(output.attempt, output.took, output.fault);
        break;
      case "crewLost": {
        const { crew, epoch, fault: failure } = output;
        // One of the two knows the crew.
        this.config.onSim({ type: "simmed", crew, answer: { is: "failed", epoch, failure } });
        this.config.onStage({ type: "staged", crew, answer: { is: "failed", epoch, failure } });
        break;
      }
      case "auditionLost":
        this.config.onSim({ type: "auditioned", crew: output.crew, heard: { failure: output.fault } });
        break;
      case "gone":
        this.config.onHealth(output.why, undefined);
        break;
    }
  }

  private open(engine: number): void {
    const worker = new Worker(this.config.worker, { type: "module" });
    const seat: Seat = { worker, jobs: new Set(), seeks: new Map(), item: undefined, stderr: "" };
    worker.onmessage = ({ data }: MessageEvent<FromEngine>) => {
      // Others were ended, and may have spoken before.
      if (this.seats.get(engine) === seat) this.hear(engine, seat, data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.died(engine, event.message || "its code could not be loaded");
    };
    this.seats.set(engine, seat);
    const { base, wasm, hashing } = this.config;
    const means = this.config.means?.();
    tell(seat, { type: "open", base, wasm, hashing, session: this.config.session(), ...(means ? { means } : {}) });
  }

  private end(engine: number): void {
    const seat = this.seats.get(engine);
    seat?.worker.terminate();
    for (const seek of seat?.seeks.values() ?? []) seek.end();
    if (this.seats.delete(engine)) this.config.onRuntime?.(undefined);
  }

  private died(engine: number, why: string): void {
    this.end(engine);
    this.supervise((engines, now) => engines.died(now, engine, why));
  }

  private give(engine: number, attempt: number): void {
    const [seat, given] = [this.seats.get(engine), this.units.get(attempt)];
    if (!seat || !given || !this.tellJob(seat, given.unit.job)) return;
    given.seat = seat;
    tell(seat, { type: "run", unit: given.unit });
  }

  /** Whether the job is known. */
  private tellJob(seat: Seat, job: number): boolean {
    if (seat.jobs.has(job)) return true;
    const info = this.config.info(job);
    if (!info) return false;
    seat.jobs.add(job);
    tell(seat, { type: "job", job, info });
    return true;
  }

  private failed(attempt: number, took: number, fault: EngineFault): void {
    const given = this.units.get(attempt);
    if (!given) return;
    this.units.delete(attempt);
    const failure: UnitFailure = { ...fault };
    if (fault.kind === "time" && given.seat) {
      const { item, stderr } = given.seat;
      failure.stderr = stderr;
      if (item !== undefined) failure.item = item;
    }
    this.config.onFailed(attempt, took, failure);
  }

  private hear(engine: number, seat: Seat, said: FromEngine): void {
    if (said.type === "ready") {
      this.supervise((engines, now) => engines.ready(now, engine));
      this.config.onHealth(undefined, said.class);
    } else if (said.type === "broken") {
      this.end(engine);
      this.supervise((engines, now) => engines.broken(now, engine, said.message));
    } else if (said.type === "need") {
      const { hash } = said.blob;
      void this.config.onNeed(said.blob).finally(() => tell(seat, { type: "had", hash }));
    } else if (said.type === "runtime") {
      this.config.onRuntime?.(said.offer);
    } else if (said.type === "loading" || said.type === "said") {
      // Only pages that wait for it show it.
    } else if (said.type === "seek") {
      this.seek(seat, said);
    } else if (said.type === "keep") {
      seat.seeks.get(said.seek)?.keep(said.piece, said.bytes);
    } else if (said.type === "sought") {
      seat.seeks.get(said.seek)?.end();
      seat.seeks.delete(said.seek);
    } else if (said.type === "simmed" || said.type === "auditioned") {
      this.hearOfBand(said);
      const failure = lostWith(said);
      if (failure) this.died(engine, failure.message);
    } else if (said.type === "staged") {
      const { epoch, is } = said.answer;
      this.supervise((engines, now) => engines.answered(now, said.crew, epoch, is === "failed"));
      this.config.onStage(said);
      if (said.fatal && "failure" in said.answer) this.died(engine, said.answer.failure.message);
    } else {
      this.hearOfUnit(engine, seat, said);
    }
  }

  private seek(seat: Seat, { seek, ...pieces }: FromEngine & { type: "seek" }): void {
    const begun = this.config.onSeek(pieces, {
      found: (piece, bytes) => seat.worker.postMessage({ type: "found", seek, piece, bytes } satisfies ToEngine, [bytes.buffer]),
      stream: (pieces) => tell(seat, { type: "stream", seek, pieces }),
    });
    seat.seeks.set(seek, begun);
  }

  private hearOfBand(said: FromSim): void {
    const { crew } = said;
    if (said.type === "auditioned") {
      this.supervise((engines, now) => engines.answered(now, crew, undefined, false));
    } else if (said.answer.is === "edges" || said.answer.is === "failed") {
      const { epoch, is } = said.answer;
      this.supervise((engines, now) => engines.answered(now, crew, epoch, is === "failed"));
    }
    this.config.onSim(said);
  }

  private hearOfUnit(engine: number, seat: Seat, said: AboutUnit): void {
    const { attempt } = said;
    switch (said.type) {
      case "clock":
        [seat.item, seat.stderr] = [said.item, ""];
        this.supervise((engines, now) => engines.computing(now, attempt));
        break;
      case "rest":
        this.supervise((engines, now) => engines.resting(now, attempt));
        break;
      case "stderr":
        seat.stderr = said.tail;
        break;
      case "part":
        if (this.units.has(attempt)) this.config.onPart(attempt, said.bytes);
        break;
      case "done":
        this.supervise((engines, now) => engines.ended(now, attempt));
        if (this.units.delete(attempt)) this.config.onDone(attempt, said.took, said.result);
        break;
      case "failed":
        this.supervise((engines, now) => engines.ended(now, attempt));
        if (said.fatal) this.died(engine, said.failure.message);
        if (this.units.delete(attempt)) this.config.onFailed(attempt, said.took, said.failure);
        break;
    }
  }
}

function tell(seat: Seat, message: ToEngine): void {
  seat.worker.postMessage(message);
}

/** A device that is gone is opened anew. */
function lostWith(said: FromSim): UnitFailure | undefined {
  const told = said.type === "simmed" ? said.answer : said.heard;
  if (!("failure" in told)) return undefined;
  return told.failure.kind === "lost" || told.failure.kind === "internal" ? told.failure : undefined;
}
