/** A node's crews. The brain Worker imports it when the node is first asked into one. */

import init, { Crew, type CrewConfig } from "../../../generated/crew/crew.js";
import type { BrainOutput } from "../../../generated/brain/brain.js";
import { BLOBS, CREW_AT } from "../../constants.js";
import type { FromSim, FromStage } from "../messages.js";
import type { CrewHost, TalkOutput } from "./host.js";
import { Part } from "./part.js";
import { Quic } from "./quic.js";
import { Swarm } from "./swarm.js";

/** The page is shown how crews are doing at most this often. */
const SHOW_EVERY_MS = 500;

export type CrewOrder = Extract<
  BrainOutput,
  { type: "audition" | "enlist" | "dismiss" | "toCrew" | "askCrew" | "openQuic" | "closeQuic" | "swarm" }
>;

/** `base`: the coordinator's address. */
export async function open(wasm: string, base: string, host: CrewHost): Promise<Crews> {
  await init({ module_or_path: wasm });
  return new Crews(base, host);
}

export class Crews {
  private readonly parts = new Map<number, Part>();
  /** Of the key this node's links are sealed with, as long as this page lives. */
  private readonly secret = random();
  private isUp = false;
  /** Blobs that devices give each other. */
  readonly swarm: Swarm | undefined;
  /** Crews of two in which pieces travel, and who the other is. */
  private readonly sharers = new Map<number, number>();
  private showing: ReturnType<typeof setInterval> | undefined;
  private readonly quic: Quic;

  constructor(
    base: string,
    private readonly host: CrewHost,
  ) {
    this.quic = new Quic(base, {
      up: () => host.tellBrain((brain, now) => brain.quicUp(now)),
      down: () => host.tellBrain((brain, now) => brain.quicDown(now)),
      frame: (frame) => this.frame(frame),
    });
    const key = Crew.linkKey(this.secret);
    host.tellBrain((brain, now) => brain.linkKey(now, key));
    this.swarm = host.pool && new Swarm(host, host.pool);
  }

  act(order: CrewOrder): void {
    switch (order.type) {
      case "audition":
        this.host.askGpu(order, order.job, []);
        break;
      case "enlist":
        this.enlist(order);
        break;
      case "dismiss":
        this.parts.get(order.crew)?.close();
        this.parts.delete(order.crew);
        this.unlink(order.crew);
        this.show();
        break;
      case "swarm":
        this.swarm?.told(order.bytes);
        break;
      case "toCrew":
        this.parts.get(order.crew)?.give((member, now) => member.told(now, order.bytes));
        break;
      case "askCrew":
        this.parts.get(order.crew)?.give((member, now) => member.ask(now, order.call, order.body));
        break;
      case "openQuic":
        this.quic.open(order);
        break;
      case "closeQuic":
        this.quic.close();
        break;
    }
  }

  part(crew: number): Part | undefined {
    return this.parts.get(crew);
  }

  /** The socket is open and greeted, or lost. */
  relay(isUp: boolean): void {
    if (isUp === this.isUp) return;
    this.isUp = isUp;
    this.swarm?.relay(isUp);
    for (const part of this.parts.values()) part.give((member, now) => member.relay(now, isUp));
  }

  frame(frame: Uint8Array): void {
    if (frame.byteLength < CREW_AT + 8) return;
    const header = new DataView(frame.buffer, frame.byteOffset);
    const part = this.parts.get(Number(header.getBigUint64(CREW_AT, true)));
    part?.give((member, now) => member.frame(now, frame));
  }

  /** The GPU Worker answers. */
  heard(said: FromSim): void {
    if (said.type === "simmed") {
      this.parts.get(said.crew)?.answer(said.answer);
      return;
    }
    const { crew, heard } = said;
    this.host.tellBrain((brain, now) =>
      "failure" in heard
        ? brain.crewFailed(now, crew, 0, heard.failure)
        : brain.auditioned(now, crew, heard.cells, heard.took),
    );
  }

  /** The models' Worker answers. */
  staged({ crew, answer }: FromStage): void {
    this.parts.get(crew)?.staged(answer);
  }

  close(): void {
    this.quic.close();
    for (const part of this.parts.values()) part.close();
    this.parts.clear();
    this.show();
  }

  private enlist({ crew, job, shares, bytes }: CrewOrder & { type: "enlist" }): void {
    const joined = this.host.joined();
    if (!joined) return;
    const before = this.parts.get(crew);
    // After another connection this node may have another number, which all its links were made with.
    const goesOn = before?.isOver === false && before.me === joined.me;
    if (!goesOn) before?.close();
    const part = goesOn ? before : this.join(crew, job, joined, shares);
    part.give((member, now) => member.enlist(now, bytes));
    if (shares) this.link(crew, part);
    if (!goesOn && this.isUp) part.give((member, now) => member.relay(now, true));
    this.show();
  }

  /** Pieces of blobs go from here to the other of two, and back. */
  private link(crew: number, part: Part): void {
    const peer = part.members().find((member) => member !== part.me);
    if (peer === undefined) return;
    this.sharers.set(crew, peer);
    this.swarm?.linked(peer, (bytes) => part.give((member, now) => member.app(now, peer, BLOBS, bytes)));
  }

  private unlink(crew: number): void {
    const peer = this.sharers.get(crew);
    if (!this.sharers.delete(crew) || peer === undefined) return;
    this.swarm?.unlinked(peer);
  }

  private shared(output: TalkOutput): void {
    if (output.type === "using") this.swarm?.near(output.peer, output.via === "direct");
    else if (output.type === "app") this.swarm?.heard(output.from, output.bytes);
  }

  private join(
    crew: number,
    job: number | undefined,
    joined: { me: number; coordinator: string },
    shares: boolean,
  ): Part {
    const config: CrewConfig = {
      ...joined,
      secret: this.secret,
      seed: random(),
      timeOrigin: performance.timeOrigin,
      triesDirect: true,
    };
    const info = job === undefined ? undefined : this.host.job(job);
    if (info && "width" in info.work) config.work = info.work.bytes;
    const member = new Crew(performance.now(), config);
    const talked = (_: number, output: TalkOutput) => this.shared(output);
    const host = shares ? { ...this.host, talked } : this.host;
    const send = (frame: Uint8Array<ArrayBuffer>) => this.send(frame);
    const part = new Part(host, send, joined.me, crew, job, info?.name ?? "", member, !shares);
    this.parts.set(crew, part);
    return part;
  }

  /** By QUIC while there is such a way. */
  private send(frame: Uint8Array<ArrayBuffer>): void {
    if (!this.quic.pass(frame)) this.host.sendFrame(frame);
  }

  private show(): void {
    const notes = [...this.parts.values()].flatMap((part) => part.note() ?? []);
    this.host.show(notes);
    if (notes.length === 0) {
      clearInterval(this.showing);
      this.showing = undefined;
    } else {
      this.showing ??= setInterval(() => this.show(), SHOW_EVERY_MS);
    }
  }
}

function random(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(32));
}
