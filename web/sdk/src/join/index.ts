/** Lends the device a page runs on. The page asks the person first; this does the rest. */

import { hex } from "../keyring.js";
import type { FromRadio, RadioCall } from "../workers/radio-words.js";
import type { BrainStatus, DeviceState, FromBrain, Offer, ToBrain } from "../workers/messages.js";
import { Awake, type Circumstances, watchCircumstances, type Watching } from "./circumstances.js";
import type { CrewNote } from "./crew.js";
import { type Device, lookAtDevice, usualMemory } from "./device.js";
import { type Claimed, claimIdentity } from "./identity.js";
import { partsOf } from "./link.js";
import { findPlaces, type Found } from "./places.js";
import { conditionOf, restReason, USUAL } from "./power.js";
import { stateOf } from "./state.js";
import type { JoinHandle, JoinOptions, JoinStatus, Lend, Lent, Rules, RunningUnit } from "./types.js";

export type * from "./types.js";

/** By the printed link, or by its parts. */
export async function join(link: string, more?: Omit<JoinOptions, "url" | "token">): Promise<JoinHandle>;
export async function join(options: JoinOptions): Promise<JoinHandle>;
export async function join(
  where: string | JoinOptions,
  more: Omit<JoinOptions, "url" | "token"> = {},
): Promise<JoinHandle> {
  const options = typeof where === "string" ? { ...more, ...partsOf(where) } : where;
  const rules = checked(options.rules ?? { only: [], never: [] });
  const base = new URL(options.url).href.replace(/\/(#.*)?$/, "");
  const [device, claimed, found] = await Promise.all([
    lookAtDevice(),
    claimIdentity(base),
    findPlaces(base, options.assets),
  ]);
  const joined = new Joined({ ...options, rules }, device, found, claimed);
  joined.start(await watchCircumstances((now) => joined.circumstancesChanged(now)));
  return joined;
}

const SPEED = 100;

/** The node's code is 60 kB: who has not got it running by now has the wrong code, or none. */
const START_MS = 15_000;
/** A donor who wants it over is not kept waiting for good manners longer than this. */
const GOODBYE_MS = 50;

class Joined implements JoinHandle {
  status: JoinStatus;
  readonly stopped: Promise<string | undefined>;
  private tellStopped: (reason?: string) => void = () => undefined;
  private readonly lend: Lent;
  private readonly worker: Worker;
  private readonly running = new Map<number, RunningUnit>();
  private readonly awake = new Awake();
  private circumstances: Circumstances = { hidden: false, frozen: false, battery: undefined, metered: false };
  private stopWatching: () => void = () => undefined;
  private pausedByDonor = false;
  private brain: BrainStatus | undefined;
  private offered = "";
  private gpuTrouble: string | undefined;
  private crews: CrewNote[] = [];
  private radio: Promise<typeof import("./radio.js")> | undefined;
  private told = "";
  private starting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly options: JoinOptions & { rules: Rules },
    private readonly device: Device,
    private readonly found: Found,
    private readonly claimed: Claimed,
  ) {
    const { cpu, gpu, onlyPluggedIn, whenHidden, onLowBattery } = { ...USUAL, ...options };
    this.lend = { cpu, gpu, onlyPluggedIn, whenHidden, onLowBattery };
    if (options.memory !== undefined) this.lend.memory = options.memory;
    this.stopped = new Promise((resolve) => (this.tellStopped = resolve));
    this.worker = new Worker(found.brainWorker, { type: "module", name: "shoal" });
    this.worker.onmessage = ({ data }: MessageEvent<FromBrain>) => this.hear(data);
    this.worker.onerror = (event) => this.end(`the node failed: ${event.message || "it could not be loaded"}`);
    this.status = this.describe();
  }

  start(watching: Watching): void {
    this.circumstances = watching.now;
    this.stopWatching = watching.stop;
    const { token, rules } = this.options;
    const { identity } = this.claimed;
    const [offer, state] = [this.offer(), this.state()];
    [this.offered, this.told] = [JSON.stringify(offer), JSON.stringify(state)];
    this.starting = setTimeout(() => this.startsNoMore(), START_MS);
    const together = this.options.together ?? false;
    this.tell({ type: "start", places: this.found.places, token, identity, offer, rules, state, together });
    this.report();
  }

  stop(): void {
    this.tell({ type: "stop" });
    // The Worker says goodbye, so that its units go to others at once; then it is ended, whatever it does.
    setTimeout(() => this.end(), GOODBYE_MS);
  }

  pause(): void {
    this.pausedByDonor = true;
    this.adapt();
  }

  resume(): void {
    this.pausedByDonor = false;
    this.adapt();
  }

  set(lend: Lend): void {
    Object.assign(this.lend, lend);
    this.adapt();
  }

  setRules(rules: Rules): void {
    this.tell({ type: "rules", rules: checked(rules) });
  }

  circumstancesChanged(now: Circumstances): void {
    this.circumstances = now;
    this.adapt();
  }

  private startsNoMore(): void {
    if (this.status.state !== "starting") return;
    const code = this.found.places.brainWasm;
    this.end(`the node did not start in ${START_MS / 1000} s: ${code} is missing or outdated, or does not load`);
  }

  /** Brings what is lent in line with what the donor wants and how things are. */
  private adapt(): void {
    if (this.status.state === "stopped") return;
    // First what may be urgent: a page that hides may not run much longer.
    const state = this.state();
    const stateText = JSON.stringify(state);
    if (stateText !== this.told) {
      this.told = stateText;
      this.tell({ type: "state", state });
    }
    const offer = this.offer();
    const text = JSON.stringify(offer);
    if (text !== this.offered) {
      this.offered = text;
      this.tell({ type: "offer", offer });
    }
    this.report();
  }

  private offer(): Offer {
    const slow = this.circumstances.hidden && this.lend.whenHidden === "slow";
    const share = Math.min(1, Math.max(0, this.lend.cpu)) * (slow ? 0.5 : 1);
    const slots = share === 0 ? 0 : Math.max(1, Math.round(share * this.device.cores));
    const name = this.options.name ?? this.device.name;
    const memory = Math.max(0, this.lend.memory ?? usualMemory(this.device.memory));
    const offer: Offer = { name, cpuSlots: slots, memory, speed: SPEED };
    if (this.lend.gpu && this.device.gpu) {
      // Nobody knows what memory a GPU has: only a limit the donor chose counts there.
      offer.gpu = this.lend.memory === undefined ? this.device.gpu : { ...this.device.gpu, memory };
    }
    return offer;
  }

  private state(): DeviceState {
    return { condition: conditionOf(this.circumstances), paused: this.pauseReason() !== undefined };
  }

  private pauseReason(): string | undefined {
    return this.pausedByDonor ? "paused by you" : restReason(this.circumstances, this.lend);
  }

  private hear(said: FromBrain): void {
    switch (said.type) {
      case "status":
        this.brain = said.status;
        break;
      case "started": {
        const unit = { ...said.unit, since: Date.now() };
        this.running.set(unit.attempt, unit);
        this.options.onUnit?.({ type: "started", unit });
        break;
      }
      case "ended":
        this.unitEnded(said);
        break;
      case "refused":
        this.options.onRefused?.(said.job, said.message);
        return;
      case "gpu":
        this.gpuTrouble = said.problem;
        break;
      case "crews":
        this.crews = said.crews;
        break;
      case "radio":
        void this.call(said);
        return;
      case "stopped":
        this.end(said.reason);
        return;
    }
    this.report();
  }

  /** Most devices never call another, so the code for it comes with the first call. */
  private async call(call: RadioCall): Promise<void> {
    try {
      this.radio ??= import(this.found.radio) as Promise<typeof import("./radio.js")>;
      (await this.radio).answer(call);
    } catch (error) {
      this.radio = undefined;
      console.error(`no direct ways to other nodes: ${String(error)}`);
      call.port.postMessage({ is: "down" } satisfies FromRadio);
    }
  }

  private unitEnded({ attempt, failure, revoked }: FromBrain & { type: "ended" }): void {
    const unit = this.running.get(attempt);
    if (!unit) return;
    this.running.delete(attempt);
    if (failure) {
      this.options.onUnit?.({ type: "failed", unit, message: failure.message || failure.kind });
    } else {
      this.options.onUnit?.({ type: revoked ? "revoked" : "finished", unit });
    }
  }

  private end(reason?: string): void {
    if (this.status.state === "stopped") return;
    clearTimeout(this.starting);
    this.worker.terminate();
    this.stopWatching();
    this.awake.set(false);
    this.claimed.release();
    this.found.release();
    this.running.clear();
    this.status = { ...this.describe(), state: "stopped", running: [], crews: [], services: [] };
    if (reason !== undefined) this.status.reason = reason;
    this.options.onStatus?.(this.status);
    this.tellStopped(reason);
  }

  private report(): void {
    if (this.status.state === "stopped") return;
    this.status = this.describe();
    this.awake.set((this.running.size > 0 || this.crews.length > 0) && !this.circumstances.hidden);
    this.options.onStatus?.(this.status);
  }

  private describe(): JoinStatus {
    const { name, cores, memory, gpu, gpuProblem } = this.device;
    const { brain } = this;
    const { cpuSlots, memory: lentMemory, gpu: lentGpu } = this.offer();
    const status: JoinStatus = {
      state: "starting",
      identity: hex(this.claimed.identity.publicKey),
      device: { name, cores, memory, gpu: gpu ? { name: gpu.name, software: gpu.software } : null },
      lent: { cpuSlots, memory: lentMemory, gpu: lentGpu !== undefined },
      running: [...this.running.values()],
      crews: this.crews,
      services: brain?.services ?? [],
      queued: brain?.queued ?? 0,
      unitsDone: brain?.unitsDone ?? 0,
      unitsFailed: brain?.unitsFailed ?? 0,
    };
    if (gpuProblem !== undefined) status.gpuProblem = gpuProblem;
    if (this.gpuTrouble !== undefined) {
      status.gpuProblem = `The GPU is not being lent: ${this.gpuTrouble}`;
      status.lent.gpu = false;
    }
    if (brain?.node !== undefined) status.node = brain.node;
    if (brain?.coordinator !== undefined) status.coordinator = brain.coordinator;
    const reason = this.pauseReason();
    if (brain) status.state = stateOf(brain.phase);
    if (status.state === "joined" && reason !== undefined) status.state = "paused";
    if (reason !== undefined) status.reason = reason;
    return status;
  }

  private tell(message: ToBrain): void {
    this.worker.postMessage(message);
  }
}

function checked({ only, never }: Rules): Rules {
  const key = (text: string) => {
    if (/^[0-9a-f]{64}$/i.test(text)) return text.toLowerCase();
    throw new TypeError(`invalid key "${text}" in the rules: expected 64 hexadecimal digits`);
  };
  return { only: only.map(key), never: never.map(key) };
}
