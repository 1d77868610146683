/** A page's way into a pool's mesh: it becomes a node that talks and lends nothing. */

import { answer } from "../join/radio.js";
import { claimIdentity } from "../join/identity.js";
import { GPUPeerError } from "./error.js";
import type { FromTalker, ToTalker } from "./mesh-words.js";
import { type Carrier, Port } from "./mesh-port.js";
import { Listener, type Mesh, type PeerPort } from "./port.js";

/** The Worker's code is 150 kB and a pool answers at once: who is not in by now has the wrong address. */
const JOIN_MS = 20_000;
/** A coordinator that was asked for a peer answers at once, unless this page is just out of the pool. */
const MEET_MS = 15_000;
/** A node that only just came is not known to everybody in the same moment: it is asked for again for so long. */
const COMING_MS = 2_000;
const AGAIN_MS = 100;
/** The peer has this long to hear the last words of a connection. Once it did it ends the crew itself. */
const LINGER_MS = 3_000;
/** A page that leaves has this long to say so. */
const GOODBYE_MS = 50;

export interface MeshOptions {
  /** The coordinator's address. */
  url: string;
  /** What follows the `#` of the join link. */
  token: string;
  /** What people see in the list of nodes. */
  name?: string;
  /** Where the code is, if not with the coordinator: a folder with its `/assets`. */
  assets?: string;
}

/** Joins the pool of a join link, or of its parts. */
export async function connectMesh(pool: string | URL | MeshOptions): Promise<Mesh> {
  const options = typeof pool === "string" || pool instanceof URL ? parsed(pool) : pool;
  const base = new URL(options.url).href.replace(/\/(#.*)?$/, "");
  const assets = new URL((options.assets ?? `${base}/assets`).replace(/\/?$/, "/"), location.href);
  const [claimed, code] = await Promise.all([claimIdentity(`${base} talk`), workerCode(assets)]);
  const worker = new Worker(code.url, { type: "module", name: "shoal talk" });
  const mesh = new Joined(worker, () => {
    claimed.release();
    code.release();
  });
  const { token, name = document.title || "a page" } = options;
  const places = { brainWasm: `${assets.href}brain_bg.wasm`, crewWasm: `${assets.href}crew_bg.wasm` };
  await mesh.start({ type: "start", base, token, name, identity: claimed.identity, ...places });
  return mesh;
}

function parsed(link: string | URL): MeshOptions {
  const { origin, hash } = new URL(link);
  if (hash.length > 1) return { url: origin, token: hash.slice(1) };
  throw new GPUPeerError("no-mesh", `${String(link)} is not a join link: expected http://host:port/join#token`);
}

/** A page may only start Workers of its own origin, so for another site's page the code is fetched first. */
async function workerCode(assets: URL): Promise<{ url: string; release: () => void }> {
  const url = `${assets.href}talk-worker.js`;
  if (assets.origin === location.origin) return { url, release: () => undefined };
  const answer = await fetch(url).catch((error: unknown) => {
    throw new GPUPeerError("no-mesh", `cannot fetch ${url}: ${String(error)}`);
  });
  if (!answer.ok) throw new GPUPeerError("no-mesh", `${url} answered ${answer.status}`);
  const copy = URL.createObjectURL(new Blob([await answer.text()], { type: "text/javascript" }));
  return { url: copy, release: () => URL.revokeObjectURL(copy) };
}

interface Meeting {
  since: number;
  resolve: (pair: Pair) => void;
  reject: (error: GPUPeerError) => void;
  late: ReturnType<typeof setTimeout>;
}

/** A crew of two, with the port that is open on it. */
interface Pair {
  crew: number;
  peer: number;
  via: "relay" | "direct";
  port: Port;
  /** The connection was closed here: the crew is about to end. */
  isLeft: boolean;
  /** Resolves when the crew is over. */
  over: Promise<void>;
  end: () => void;
}

class Joined implements Mesh, Carrier {
  id = 0;
  readonly closed: Promise<string | undefined>;
  private readonly tellClosed: (reason: string | undefined) => void;
  private readonly callers = new Listener<[number]>();
  private readonly pairs = new Map<number, Pair>();
  private readonly meetings = new Map<number, Meeting>();
  private joining: { resolve: () => void; reject: (error: GPUPeerError) => void } | undefined;
  private isOver = false;

  constructor(
    private readonly worker: Worker,
    private readonly release: () => void,
  ) {
    let tell: (reason: string | undefined) => void = () => undefined;
    this.closed = new Promise((resolve) => (tell = resolve));
    this.tellClosed = tell;
    worker.onmessage = ({ data }: MessageEvent<FromTalker>) => this.hear(data);
    worker.onerror = ({ message }) => this.end(`the node failed: ${message || "it could not be loaded"}`);
  }

  get onpeer() {
    return this.callers.get();
  }

  set onpeer(listener) {
    this.callers.set(listener);
  }

  async start(start: ToTalker & { type: "start" }): Promise<void> {
    const late = setTimeout(() => this.end(`${start.base} did not accept this page within ${JOIN_MS / 1000} s`), JOIN_MS);
    try {
      await new Promise<void>((resolve, reject) => {
        this.joining = { resolve, reject };
        this.tell(start);
      });
    } finally {
      clearTimeout(late);
    }
  }

  async meet(peer: number): Promise<PeerPort> {
    if (this.isOver) throw new GPUPeerError("no-mesh", "this page has left the pool");
    if (peer === this.id) throw new GPUPeerError("not-met", `node ${peer} is this page itself`);
    const left = this.with(peer);
    if (left?.isLeft) await left.over;
    const { port } = this.with(peer) ?? (await this.call(peer));
    if (port.isTaken) throw new GPUPeerError("busy", `this page is already connected to node ${peer}`);
    port.isTaken = true;
    return port;
  }

  close(): void {
    this.tell({ type: "stop" });
    setTimeout(() => this.end(), GOODBYE_MS);
  }

  private with(peer: number): Pair | undefined {
    return [...this.pairs.values()].find((pair) => pair.peer === peer);
  }

  private call(peer: number): Promise<Pair> {
    const known = this.meetings.get(peer);
    if (known) return Promise.reject(new GPUPeerError("busy", `this page is already calling node ${peer}`));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.missed(peer, "the pool did not answer"), MEET_MS);
      this.meetings.set(peer, { since: performance.now(), resolve, reject, late });
      this.tell({ type: "meet", peer });
    });
  }

  private notMet(peer: number): void {
    const meeting = this.meetings.get(peer);
    if (!meeting) return;
    if (performance.now() - meeting.since > COMING_MS) {
      this.missed(peer, "there is no such node in the pool, it takes no calls, or it already has too many");
    } else {
      setTimeout(() => this.meetings.get(peer) === meeting && this.tell({ type: "meet", peer }), AGAIN_MS);
    }
  }

  private missed(peer: number, why: string): void {
    const meeting = this.meetings.get(peer);
    if (!meeting) return;
    clearTimeout(meeting.late);
    this.meetings.delete(peer);
    meeting.reject(new GPUPeerError("not-met", `cannot connect to node ${peer}: ${why}`));
  }

  private hear(said: FromTalker): void {
    switch (said.type) {
      case "joined":
        this.id = said.node;
        this.joining?.resolve();
        break;
      case "met":
        this.met(said.crew, said.peer);
        break;
      case "notMet":
        this.notMet(said.peer);
        break;
      case "heard":
        this.pairs.get(said.crew)?.port.messages.hear(said.channel, said.bytes);
        break;
      case "using": {
        const pair = this.pairs.get(said.crew);
        if (pair) pair.via = said.via;
        break;
      }
      case "refused":
        this.pairs.get(said.crew)?.port.ends.hear("more data was sent than the link can carry");
        break;
      case "parted":
        this.parted(said.crew, "it left the pool, or this page lost its connection to the pool");
        break;
      case "radio":
        answer(said);
        break;
      case "stopped":
        this.end(said.reason);
        break;
    }
  }

  private met(crew: number, peer: number): void {
    let end = () => undefined as void;
    const over = new Promise<void>((resolve) => (end = resolve));
    const pair: Pair = { crew, peer, via: "relay", port: new Port(this, crew, peer), isLeft: false, over, end };
    this.pairs.set(crew, pair);
    const meeting = this.meetings.get(peer);
    if (!meeting) return this.callers.hear(peer);
    clearTimeout(meeting.late);
    this.meetings.delete(peer);
    meeting.resolve(pair);
  }

  private parted(crew: number, why: string): void {
    const pair = this.pairs.get(crew);
    this.pairs.delete(crew);
    pair?.port.ends.hear(why);
    pair?.end();
  }

  private end(reason?: string): void {
    if (this.isOver) return;
    this.isOver = true;
    const why = reason ?? "this page left the pool";
    this.joining?.reject(new GPUPeerError("no-mesh", why));
    for (const peer of [...this.meetings.keys()]) this.missed(peer, why);
    for (const crew of [...this.pairs.keys()]) this.parted(crew, why);
    this.worker.terminate();
    this.release();
    this.tellClosed(reason);
  }

  /** For its ports. */
  tell(message: ToTalker, transfer: Transferable[] = []): void {
    if (!this.isOver) this.worker.postMessage(message, transfer);
  }

  viaOf(crew: number): "relay" | "direct" {
    return this.pairs.get(crew)?.via ?? "relay";
  }

  /** A crew lasts as long as its connection, so that a node's crews are those it talks in. */
  leave(crew: number, lingers: boolean): void {
    const pair = this.pairs.get(crew);
    if (!pair || pair.isLeft) return;
    pair.isLeft = true;
    if (lingers) setTimeout(() => this.pairs.has(crew) && this.tell({ type: "leave", crew }), LINGER_MS);
    else this.tell({ type: "leave", crew });
  }
}
