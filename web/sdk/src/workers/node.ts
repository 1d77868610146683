/** The node brain with its socket, its timers and its engine Workers. */

import type { Brain, BrainOutput } from "../../generated/brain/brain.js";
import type { JobNote } from "../join/unit.js";
import { hostOf } from "./crew/host.js";
import { Crews } from "./crews.js";
import { problemWith, sign } from "./keys.js";
import { Lanes } from "./lanes.js";
import type { BrainJob, DeviceState, FromBrain, Offer, Rules, Start } from "./messages.js";
import { Socket } from "./socket.js";

/** A page is told how things stand at most this often, or at once when the phase changes. */
const STATUS_EVERY_MS = 200;
/** What is made ready for a service is counted like a unit, above all numbers that units have. */
const WARMS = 2 ** 52;
/** A node joins with all it has, but not later than this for a GPU that takes its time: it is offered when it is there. */
const GPU_PATIENCE_MS = 3_000;

export class Node {
  private readonly socket: Socket;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private statusTimer: ReturnType<typeof setTimeout> | undefined;
  private phase = "";
  private session = "";
  private begin: (() => void) | undefined;
  private coordinator: string | undefined;
  private isBroken = false;
  private readonly todo: BrainOutput[] = [];
  private performing = false;
  private readonly infos = new Map<number, BrainJob>();
  private readonly lanes: Lanes;
  private readonly crews: Crews;

  constructor(
    private readonly brain: Brain,
    /** The brain's code, for its hash function. */
    hashing: WebAssembly.Module,
    private readonly key: CryptoKey,
    { places, offer, together }: Start,
  ) {
    this.socket = new Socket(`${places.base.replace(/^http/, "ws")}/node/socket`, {
      opened: () => this.perform(this.brain.opened(performance.now())),
      closed: () => this.perform(this.brain.closed(performance.now())),
      received: (frame) => this.receive(frame),
    });
    this.lanes = new Lanes(places, offer, {
      hashing,
      session: () => this.session,
      info: (job) => this.info(job),
      onPart: (attempt, bytes) => this.perform(this.brain.part(performance.now(), attempt, bytes)),
      onDone: (attempt, took, result) => {
        const now = performance.now();
        if (attempt >= WARMS) return this.perform(this.brain.warmed(now, attempt - WARMS, undefined));
        this.perform(
          "inline" in result
            ? this.brain.ranInline(now, attempt, took, result.inline)
            : this.brain.ranStored(now, attempt, took, result.hash, result.size),
        );
        tell({ type: "ended", attempt });
      },
      onFailed: (attempt, took, failure) => {
        if (attempt >= WARMS) return this.perform(this.brain.warmed(performance.now(), attempt - WARMS, failure));
        this.perform(this.brain.ranFailed(performance.now(), attempt, took, failure));
        tell({ type: "ended", attempt, failure });
      },
      onGpu: (problem) => this.gpuHealth(problem),
      onModels: () => this.offer(this.lanes.lent),
      onNeed: (blob) => this.crews.need(blob),
      onSeek: (pieces, answer) => this.crews.seek(pieces, answer),
      onSim: (said) => this.crews.present?.heard(said),
      onStage: (said) => this.crews.present?.staged(said),
    });
    const pool = { base: places.base, session: () => this.session, hashing, keepWorker: places.keepWorker };
    const doing = { perform: (all: BrainOutput[]) => this.perform(all), info: (job: number) => this.info(job), tell, pool };
    this.crews = new Crews(places, hostOf(brain, this.socket, this.lanes, doing));
    if (together) this.crews.prepare();
  }

  /** Connects as soon as it is known what can be offered. */
  start(rules: Rules, state: DeviceState): void {
    this.rules(rules);
    this.state(state);
    this.begin = () => {
      this.begin = undefined;
      this.perform(this.brain.start(performance.now()));
    };
    this.offer(this.lanes.lent);
    if (this.lanes.isKnown) this.begin();
    else setTimeout(() => this.begin?.(), GPU_PATIENCE_MS);
  }

  /** A GPU is offered when it was opened and probed, and as long as it answers. */
  offer(offer: Offer): void {
    this.lanes.lend(offer);
    this.perform(this.brain.offer(performance.now(), this.lanes.able()));
  }

  rules(rules: Rules): void {
    this.perform(this.brain.rules(performance.now(), rules));
  }

  state({ condition, paused }: DeviceState): void {
    this.perform(this.brain.condition(performance.now(), condition));
    this.perform(this.brain.pause(performance.now(), paused));
  }

  /** A GPU that does not answer is withdrawn, so that others get its units, and lent again when it does. */
  private gpuHealth(problem: string | undefined): void {
    tell(problem === undefined ? { type: "gpu" } : { type: "gpu", problem });
    this.offer(this.lanes.lent);
    this.begin?.();
  }

  stop(): void {
    this.perform(this.brain.stop(performance.now()));
  }

  /** Acts on outputs in order, also when acting on one leads to more. */
  private perform(outputs: BrainOutput[]): void {
    if (this.isBroken) return;
    this.takeSession();
    this.todo.push(...outputs);
    if (this.performing) return;
    this.performing = true;
    try {
      for (let output = this.todo.shift(); output; output = this.todo.shift()) this.act(output);
    } catch (error) {
      this.broke(error);
      return;
    } finally {
      this.performing = false;
    }
    this.wind();
    this.tellStatus();
  }

  /** Half of what the brain asked for was done: such a node is of no use to anyone, so the donor hears why it ends. */
  private broke(error: unknown): void {
    console.error(error);
    this.isBroken = true;
    this.todo.length = 0;
    clearTimeout(this.timer);
    clearTimeout(this.statusTimer);
    this.closeAll();
    tell({ type: "stopped", reason: `the node failed: ${String(error)}` });
  }

  private act(output: BrainOutput): void {
    switch (output.type) {
      case "connect":
        this.socket.open();
        break;
      case "disconnect":
        this.socket.close();
        break;
      case "send":
        this.socket.send(output.bytes);
        break;
      case "sign":
        this.later(sign(this.key, output.statement), (proof) =>
          this.brain.signed(performance.now(), output.statement, proof),
        );
        break;
      case "check":
        this.later(problemWith(output), (problem) => {
          this.tellRefused(output.job, problem);
          return this.brain.checked(performance.now(), output.job, problem);
        });
        break;
      case "run":
        this.run(output);
        break;
      case "warm":
        this.lanes.run({ attempt: WARMS + output.job, job: output.job, start: 0, len: 0, warms: true });
        break;
      case "abort":
        this.lanes.abort(output.attempt);
        tell({ type: "ended", attempt: output.attempt, revoked: true });
        break;
      case "forget":
        this.lanes.abort(WARMS + output.job);
        this.infos.delete(output.job);
        this.lanes.forget(output.job);
        break;
      case "audition":
      case "enlist":
      case "dismiss":
      case "toCrew":
      case "askCrew":
      case "openQuic":
      case "closeQuic":
      case "swarm":
        this.crews.act(output);
        break;
      case "link":
        this.crews.prepare();
        break;
      case "stopped":
        this.closeAll();
        tell(output.reason === undefined ? { type: "stopped" } : { type: "stopped", reason: output.reason });
        break;
    }
  }

  private closeAll(): void {
    this.crews.present?.close();
    this.lanes.close();
    this.socket.close();
  }

  /** Tells the brain what only later is known. */
  private later<T>(what: Promise<T>, tellBrain: (found: T) => BrainOutput[]): void {
    what.then((found) => this.perform(tellBrain(found))).catch((error: unknown) => this.broke(error));
  }

  private run({ attempt, job, start, len, lane, body }: BrainOutput & { type: "run" }): void {
    if (lane === "inline") {
      this.perform(this.brain.ranInline(performance.now(), attempt, 0, new Uint8Array(0)));
      return;
    }
    const info = this.info(job);
    if (!info) {
      const failure = { kind: "internal", message: `job ${job} is unknown` } as const;
      this.perform(this.brain.ranFailed(performance.now(), attempt, 0, failure));
      return;
    }
    tell({ type: "started", unit: { ...this.note(job, info), attempt, start, len, lane } });
    this.lanes.run({ attempt, job, start, len, ...(body && { body }) });
  }

  private tellRefused(job: number, message: string | undefined): void {
    const info = this.info(job);
    if (info && message !== undefined) tell({ type: "refused", job: this.note(job, info), message });
  }

  private note(job: number, { name: jobName, owner, work: { kind }, signer }: BrainJob): JobNote {
    const note: JobNote = { job, jobName, owner, kind, signedHere: signer !== undefined && signer === this.coordinator };
    if (signer !== undefined) note.signer = signer;
    return note;
  }

  private info(job: number): BrainJob | undefined {
    let info = this.infos.get(job);
    if (!info) {
      info = this.brain.job(job);
      if (info) this.infos.set(job, info);
    }
    return info;
  }

  private receive(frame: Uint8Array): void {
    if (this.crews.take(frame)) return;
    let outputs: BrainOutput[];
    try {
      outputs = this.brain.received(performance.now(), frame);
    } catch (error) {
      console.error(error);
      this.socket.close();
      outputs = this.brain.closed(performance.now());
    }
    this.perform(outputs);
  }

  private takeSession(): void {
    const session = this.brain.session() ?? this.session;
    if (session === this.session) return;
    this.session = session;
    this.lanes.sessionChanged();
  }

  /** Sets the clock for the brain's next timeout. */
  private wind(): void {
    clearTimeout(this.timer);
    const due = this.brain.nextTimeout();
    if (due === undefined) return;
    const tick = () => this.perform(this.brain.tick(performance.now()));
    this.timer = setTimeout(tick, Math.max(0, due - performance.now()));
  }

  private tellStatus(): void {
    const status = this.brain.status();
    this.coordinator = status.coordinator;
    if (status.phase !== this.phase) {
      this.phase = status.phase;
      this.crews.relay(this.phase === "joined");
      tell({ type: "status", status });
      return;
    }
    this.statusTimer ??= setTimeout(() => {
      this.statusTimer = undefined;
      tell({ type: "status", status: this.brain.status() });
    }, STATUS_EVERY_MS);
  }
}

export function tell(message: FromBrain, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}
