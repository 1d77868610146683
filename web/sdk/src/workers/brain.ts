/** The brain Worker: the node brain with its socket and timers. It starts the engine Workers. */

import { initSync, Brain, type BrainOutput } from "../../generated/brain/brain.js";
import { Lane, type LaneConfig } from "./lane.js";
import type { BrainJob, FromBrain, Offer, Start, ToBrain } from "./messages.js";

/** Units the GPU Worker holds: one computes, the others' bytes travel. */
const GPU_DEPTH = 3;
/** A page is told how things stand at most this often, or at once when the phase changes. */
const STATUS_EVERY_MS = 200;
/** A GPU that stopped answering is looked at again after this time: a browser restarts what hangs. */
const PROBE_EVERY_MS = 20_000;

class Node {
  private readonly socketUrl: string;
  private socket: WebSocket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private statusTimer: ReturnType<typeof setTimeout> | undefined;
  private phase = "";
  private session = "";
  private offered: Offer;
  private gpuProblem: string | undefined;
  private readonly todo: BrainOutput[] = [];
  private performing = false;
  private readonly infos = new Map<number, BrainJob>();
  private readonly gpu: Lane;
  private readonly cpu: Lane;

  constructor(
    private readonly brain: Brain,
    { places, offer }: Start,
  ) {
    this.offered = offer;
    const { base } = places;
    this.socketUrl = `${base.replace(/^http/, "ws")}/node/socket`;
    const shared: Omit<LaneConfig, "worker" | "wasm" | "depth" | "listens" | "onHealth"> = {
      base,
      session: () => this.session,
      info: (job) => this.info(job),
      onDone: (attempt, took, result) => {
        const now = performance.now();
        this.perform(
          "inline" in result
            ? this.brain.ranInline(now, attempt, took, result.inline)
            : this.brain.ranStored(now, attempt, took, result.hash, result.size),
        );
        tell({ type: "ended", attempt });
      },
      onFailed: (attempt, took, failure) => {
        this.perform(this.brain.ranFailed(performance.now(), attempt, took, failure));
        tell({ type: "ended", attempt, failure });
      },
    };
    this.gpu = new Lane({
      ...shared,
      worker: places.gpuWorker,
      wasm: places.gpuWasm,
      depth: GPU_DEPTH,
      listens: true,
      onHealth: (problem) => this.gpuHealth(problem),
    });
    this.cpu = new Lane({
      ...shared,
      worker: places.wasiWorker,
      wasm: "",
      depth: 1,
      listens: false,
      onHealth: (problem) => problem && console.error(`programs cannot run: ${problem}`),
    });
  }

  start(): void {
    this.perform(this.brain.start(performance.now()));
  }

  offer(offer: Offer): void {
    this.offered = offer;
    this.cpu.limit(offer.cpuSlots);
    this.gpu.limit(offer.gpu ? 1 : 0);
    const { gpu, ...rest } = offer;
    const able = gpu && this.gpuProblem === undefined ? { ...rest, gpu } : rest;
    this.perform(this.brain.offer(performance.now(), able));
  }

  /** A GPU that does not answer is withdrawn, so that others get its units, and lent again when it does. */
  private gpuHealth(problem: string | undefined): void {
    if (problem !== undefined) setTimeout(() => this.offered.gpu && this.gpu.probe(), PROBE_EVERY_MS);
    if (problem === this.gpuProblem) return;
    this.gpuProblem = problem;
    tell(problem === undefined ? { type: "gpu" } : { type: "gpu", problem });
    this.offer(this.offered);
  }

  pause(paused: boolean): void {
    this.perform(this.brain.pause(performance.now(), paused));
  }

  stop(): void {
    this.perform(this.brain.stop(performance.now()));
  }

  /** Acts on outputs in order, also when acting on one leads to more. */
  private perform(outputs: BrainOutput[]): void {
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
    this.todo.length = 0;
    clearTimeout(this.timer);
    clearTimeout(this.statusTimer);
    this.gpu.close();
    this.cpu.close();
    this.disconnect();
    tell({ type: "stopped", reason: `the node broke: ${String(error)}` });
  }

  private act(output: BrainOutput): void {
    switch (output.type) {
      case "connect":
        this.connect();
        break;
      case "disconnect":
        this.disconnect();
        break;
      case "send":
        if (this.socket?.readyState === WebSocket.OPEN) {
          this.socket.send(output.bytes as Uint8Array<ArrayBuffer>);
        }
        break;
      case "run":
        this.run(output);
        break;
      case "abort":
        this.gpu.abort(output.attempt);
        this.cpu.abort(output.attempt);
        tell({ type: "ended", attempt: output.attempt, revoked: true });
        break;
      case "forget":
        this.infos.delete(output.job);
        this.gpu.forget(output.job);
        this.cpu.forget(output.job);
        break;
      case "stopped":
        this.gpu.close();
        this.cpu.close();
        this.disconnect();
        tell(output.reason === undefined ? { type: "stopped" } : { type: "stopped", reason: output.reason });
        break;
    }
  }

  private run({ attempt, job, start, len, lane }: BrainOutput & { type: "run" }): void {
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
    const { name: jobName, owner, work } = info;
    tell({ type: "started", unit: { attempt, job, jobName, owner, kind: work.kind, start, len, lane } });
    (lane === "gpu" ? this.gpu : this.cpu).run({ attempt, job, start, len });
  }

  private info(job: number): BrainJob | undefined {
    let info = this.infos.get(job);
    if (!info) {
      info = this.brain.job(job);
      if (info) this.infos.set(job, info);
    }
    return info;
  }

  private connect(): void {
    this.disconnect();
    const socket = new WebSocket(this.socketUrl);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    // Events of a socket that was given up say nothing about the present one.
    const ifPresent = (act: () => void) => () => this.socket === socket && act();
    socket.onopen = ifPresent(() => this.perform(this.brain.opened(performance.now())));
    socket.onclose = ifPresent(() => {
      this.socket = undefined;
      this.perform(this.brain.closed(performance.now()));
    });
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      if (this.socket === socket) this.receive(new Uint8Array(data));
    };
  }

  private receive(frame: Uint8Array): void {
    let outputs: BrainOutput[];
    try {
      outputs = this.brain.received(performance.now(), frame);
    } catch (error) {
      console.error(error);
      this.disconnect();
      outputs = this.brain.closed(performance.now());
    }
    this.perform(outputs);
  }

  private disconnect(): void {
    const { socket } = this;
    this.socket = undefined;
    socket?.close();
  }

  private takeSession(): void {
    const session = this.brain.session() ?? this.session;
    if (session === this.session) return;
    this.session = session;
    this.gpu.sessionChanged();
    this.cpu.sessionChanged();
  }

  /** Sets the clock for the brain's next timeout. */
  private wind(): void {
    clearTimeout(this.timer);
    const due = this.brain.nextTimeout();
    if (due === undefined) return;
    this.timer = setTimeout(
      () => this.perform(this.brain.tick(performance.now())),
      Math.max(0, due - performance.now()),
    );
  }

  private tellStatus(): void {
    const status = this.brain.status();
    if (status.phase !== this.phase) {
      this.phase = status.phase;
      tell({ type: "status", status });
      return;
    }
    this.statusTimer ??= setTimeout(() => {
      this.statusTimer = undefined;
      tell({ type: "status", status: this.brain.status() });
    }, STATUS_EVERY_MS);
  }
}

function tell(message: FromBrain): void {
  postMessage(message);
}

async function open(start: Start): Promise<Node> {
  initSync({ module: await compile(start.places.brainWasm) });
  const seed = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const node = new Node(new Brain(start.token, start.identity, start.offer, seed), start);
  node.start();
  return node;
}

async function compile(url: string): Promise<WebAssembly.Module> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return WebAssembly.compile(await answer.arrayBuffer());
}

let node: Promise<Node> | undefined;

addEventListener("message", ({ data }: MessageEvent<ToBrain>) => {
  if (data.type === "start") {
    node = open(data);
    node.catch((error: unknown) => tell({ type: "stopped", reason: `the node could not start: ${String(error)}` }));
    return;
  }
  const tellNode = (node: Node) => {
    if (data.type === "offer") node.offer(data.offer);
    else if (data.type === "pause") node.pause(data.paused);
    else node.stop();
  };
  node?.then(tellNode).catch((error: unknown) => tell({ type: "stopped", reason: `the node broke: ${String(error)}` }));
});
