/** The Worker of a page that talks: a node of the pool that lends nothing, and is in crews of two. */

import { Brain, type BrainOutput, initSync } from "../../generated/brain/brain.js";
import { Crew } from "../../generated/crew/crew.js";
import { FIRST_OF_FRAMES } from "../constants.js";
import { Crews, open as openCrews } from "../workers/crew/index.js";
import type { CrewHost, TalkOutput } from "../workers/crew/host.js";
import { sign } from "../workers/keys.js";
import { Socket } from "../workers/socket.js";
import type { FromTalker, ToTalker } from "./mesh-words.js";

/** Above so many bytes that the page has not taken nothing more of that peer is let in: what transfers of one page have under way. */
const MOST_UNTAKEN = 8 << 20;
/** Below so many it is again, early enough that the link does not stand still. */
const FEW_UNTAKEN = 2 << 20;
/** What a message costs besides its bytes, so that empty ones count too. */
const MESSAGE_BYTES = 256;
/** Nothing is computed for others here. */
const OFFER = { cpuSlots: 0, memory: 0, speed: 1 };

type Start = ToTalker & { type: "start" };

class Talker implements CrewHost {
  private crews: Crews | undefined;
  /** The other one, by crew, and what it said that the page has not taken yet. */
  private readonly peers = new Map<number, { peer: number; untaken: number; isHeld: boolean }>();
  private readonly socket: Socket;
  private readonly todo: BrainOutput[] = [];
  private performing = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Joined, and the key of this node's links was shown: others can be met. */
  private isReady = false;

  constructor(
    private readonly brain: Brain,
    private readonly start: Start,
  ) {
    this.socket = new Socket(`${start.base.replace(/^http/, "ws")}/node/socket`, {
      opened: () => this.tellBrain((brain, now) => brain.opened(now)),
      closed: () => this.tellBrain((brain, now) => brain.closed(now)),
      received: (frame) => this.receive(frame),
    });
  }

  async begin(): Promise<void> {
    this.crews = await openCrews(this.start.crewWasm, this.start.base, this);
    this.tellBrain((brain, now) => brain.pause(now, true));
    this.tellBrain((brain, now) => brain.start(now));
  }

  meet(peer: number): void {
    this.tellBrain((brain, now) => brain.crewSays(now, 0, 0, Crew.meet(peer)));
  }

  say({ crew, channel, bytes }: ToTalker & { type: "say" }): void {
    const known = this.peers.get(crew);
    if (known) this.crews?.part(crew)?.give((member, now) => member.app(now, known.peer, channel, bytes));
  }

  took({ crew, bytes }: ToTalker & { type: "took" }): void {
    this.count(crew, -bytes - MESSAGE_BYTES);
  }

  leave(crew: number): void {
    this.tellBrain((brain, now) => brain.crewSays(now, crew, 0, Crew.leave()));
  }

  stop(): void {
    this.tellBrain((brain, now) => brain.stop(now));
  }

  tellBrain(telling: (brain: Brain, now: number) => BrainOutput[]): void {
    this.perform(telling(this.brain, performance.now()));
  }

  joined(): { me: number; coordinator: string } | undefined {
    const { node: me, coordinator } = this.brain.status();
    return me === undefined || coordinator === undefined ? undefined : { me, coordinator };
  }

  job(): undefined {
    return undefined;
  }

  sendFrame(bytes: Uint8Array<ArrayBuffer>): void {
    this.socket.sendFrame(bytes);
  }

  send(bytes: Uint8Array): void {
    this.socket.send(bytes);
  }

  askGpu(): void {
    // Crews of two compute nothing.
  }

  askModels(): void {
    // Nor do they run models.
  }

  askRadio(call: FromTalker & { type: "radio" }, transfer: Transferable[]): void {
    tell(call, transfer);
  }

  show(): void {
    // The page knows whom it talks to.
  }

  talked(crew: number, output: TalkOutput): void {
    if (output.type === "using") return tell({ type: "using", crew, via: output.via });
    if (output.type === "refused") return tell({ type: "refused", crew });
    const bytes = output.bytes as Uint8Array<ArrayBuffer>;
    this.count(crew, bytes.byteLength + MESSAGE_BYTES);
    tell({ type: "heard", crew, channel: output.channel, bytes }, [bytes.buffer]);
  }

  /** A page may be busy or frozen while this Worker is not: a peer must not fill its memory. */
  private count(crew: number, bytes: number): void {
    const known = this.peers.get(crew);
    if (!known) return;
    known.untaken += bytes;
    const hold = known.untaken > (known.isHeld ? FEW_UNTAKEN : MOST_UNTAKEN);
    if (hold === known.isHeld) return;
    known.isHeld = hold;
    this.crews?.part(crew)?.give((member, now) => member.hold(now, known.peer, hold));
  }

  /** Acts on outputs in order, also when acting on one leads to more. */
  private perform(outputs: BrainOutput[]): void {
    this.todo.push(...outputs);
    if (this.performing) return;
    this.performing = true;
    try {
      for (let output = this.todo.shift(); output; output = this.todo.shift()) this.act(output);
    } finally {
      this.performing = false;
    }
    const isJoined = this.brain.status().phase === "joined";
    if (!isJoined) this.isReady = false;
    this.crews?.relay(isJoined);
    this.wind();
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
        void this.sign(output.statement);
        break;
      case "enlist":
        this.enlist(output);
        break;
      case "dismiss":
        this.crews?.act(output);
        this.peers.delete(output.crew);
        tell({ type: "parted", crew: output.crew });
        break;
      case "toCrew":
        this.told(output);
        break;
      case "openQuic":
      case "closeQuic":
        this.crews?.act(output);
        break;
      case "stopped":
        this.end(output.reason);
        break;
      case "run":
        this.tellBrain((brain, now) => brain.ranFailed(now, output.attempt, 0, { kind: "unable", message: "this page only talks" }));
        break;
      case "check":
      case "abort":
      case "forget":
      case "audition":
      case "swarm":
      case "link":
        // Of work, which a page that rests gets none of.
        break;
    }
  }

  private async sign(statement: Uint8Array): Promise<void> {
    // After joining, what is signed is the key of this node's links.
    const ofLinks = this.brain.status().phase === "joined";
    const proof = await sign(this.start.identity.privateKey, statement);
    this.tellBrain((brain, now) => brain.signed(now, statement, proof));
    const { phase, node } = this.brain.status();
    if (!ofLinks || this.isReady || phase !== "joined" || node === undefined) return;
    this.isReady = true;
    tell({ type: "joined", node });
  }

  private enlist(output: BrainOutput & { type: "enlist" }): void {
    const { crew } = output;
    this.crews?.act(output);
    const me = this.brain.status().node;
    const peer = this.crews
      ?.part(crew)
      ?.members()
      .find((node) => node !== me);
    // Both may have called: the crew is the same.
    if (peer === undefined || this.peers.has(crew)) return;
    this.peers.set(crew, { peer, untaken: 0, isHeld: false });
    tell({ type: "met", crew, peer });
  }

  private told(output: BrainOutput & { type: "toCrew" }): void {
    const peer = Crew.notMet(output.bytes);
    if (peer === undefined) this.crews?.act(output);
    else tell({ type: "notMet", peer });
  }

  private receive(bytes: Uint8Array): void {
    if ((bytes[0] ?? 0) >= FIRST_OF_FRAMES) {
      this.crews?.frame(bytes);
      return;
    }
    try {
      this.tellBrain((brain, now) => brain.received(now, bytes));
    } catch (error) {
      console.error(error);
      this.socket.close();
      this.tellBrain((brain, now) => brain.closed(now));
    }
  }

  private end(reason: string | undefined): void {
    this.crews?.close();
    this.socket.close();
    clearTimeout(this.timer);
    tell(reason === undefined ? { type: "stopped" } : { type: "stopped", reason });
  }

  /** Sets the clock for the brain's next timeout. */
  private wind(): void {
    clearTimeout(this.timer);
    const due = this.brain.nextTimeout();
    if (due === undefined) return;
    const tick = () => this.tellBrain((brain, now) => brain.tick(now));
    this.timer = setTimeout(tick, Math.max(0, due - performance.now()));
  }
}

async function open(start: Start): Promise<Talker> {
  const answer = await fetch(start.brainWasm);
  if (!answer.ok) throw new Error(`${start.brainWasm} answered ${answer.status}`);
  initSync({ module: await WebAssembly.compile(await answer.arrayBuffer()) });
  const seed = Math.floor(Math.random() * Number.MAX_SAFE_INTEGER);
  const { token, identity, name } = start;
  const brain = new Brain(token, identity.publicKey, { name, ...OFFER }, { only: [], never: [] }, seed, true);
  const talker = new Talker(brain, start);
  await talker.begin();
  return talker;
}

function tell(message: FromTalker, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

let talker: Promise<Talker> | undefined;

addEventListener("message", ({ data }: MessageEvent<ToTalker>) => {
  if (data.type === "start") {
    talker = open(data);
  } else {
    talker = talker?.then((talker) => {
      if (data.type === "meet") talker.meet(data.peer);
      else if (data.type === "say") talker.say(data);
      else if (data.type === "took") talker.took(data);
      else if (data.type === "leave") talker.leave(data.crew);
      else talker.stop();
      return talker;
    });
  }
  talker?.catch((error: unknown) => tell({ type: "stopped", reason: `the node failed: ${String(error)}` }));
});
