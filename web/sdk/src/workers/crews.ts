/** The door to a node's crews: their code is loaded when the node is first asked into one, or needs or has a blob that
 * devices give each other, because most tabs never do. */

import { FIRST_OF_FRAMES, SHARED_FROM } from "../constants.js";
import { poolName, shelved } from "../shelf.js";
import type { CrewHost } from "./crew/host.js";
import type { CrewOrder, Crews as Open } from "./crew/index.js";
import type { StoredBlob } from "./failure.js";
import { Shelf } from "./shelf.js";

/** Pieces of a blob that an engine Worker needs: from `first` on, before `end`. `hashes` are those of all its pieces. */
export interface Pieces {
  blob: StoredBlob;
  first: number;
  end: number;
  hashes: Uint8Array;
}

/** What it hears of them. */
export interface Sought {
  /** A piece that is right; its memory is given away. */
  found(piece: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** These are to come from the coordinator. */
  stream(pieces: number[]): void;
}

/** What it says of them. */
export interface Seek {
  /** A piece that came from the coordinator, and has its hash. */
  keep(piece: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Nobody waits for them any more. */
  end(): void;
}

/** All of them come from the coordinator, and none is kept. */
export function streamAll({ first, end }: Pieces, answer: Sought): Seek {
  answer.stream(Array.from({ length: end - first }, (_, at) => first + at));
  return { keep: () => undefined, end: () => undefined };
}

export class Crews {
  private readonly waiting: CrewOrder[] = [];
  private loading: Promise<Open> | undefined;
  private open: Open | undefined;
  /** Large blobs that this browser kept when the node joined, all of them or some pieces. */
  private kept: Promise<Set<string>> = Promise.resolve(new Set<string>());

  constructor(
    private readonly places: { base: string; crewModule: string; crewWasm: string },
    private readonly host: CrewHost,
  ) {}

  act(order: CrewOrder): void {
    if (this.open) return this.open.act(order);
    this.waiting.push(order);
    this.opened().catch(() => this.fail());
  }

  /** Has their code here before it is needed: only who has it can be asked into a crew that keeps a service ready. */
  prepare(): void {
    void this.opened().catch(() => undefined);
  }

  /** Sees to it that a blob which other devices need too is on the shelf. Resolves when it is there, or cannot be had
   * that way: then whoever needs it fetches it. */
  async need(blob: StoredBlob): Promise<void> {
    if (blob.size < SHARED_FROM || !Shelf.isPossible()) return;
    const open = await this.opened().catch(() => undefined);
    await open?.swarm?.need(blob);
  }

  /** Pieces from this browser's files or from other devices. While the code for that is not there, it is waited for only
   * if some of them are here; else they are kept when the Worker has them all. */
  seek(pieces: Pieces, answer: Sought): Seek {
    const swarm = this.open?.swarm;
    if (swarm) return swarm.seek(pieces, answer);
    const seek = this.kept.then((kept) => (kept.has(pieces.blob.hash) ? this.seekLater(pieces, answer) : this.keepLater(pieces, answer)));
    return {
      keep: (piece, bytes) => void seek.then((seek) => seek.keep(piece, bytes)),
      end: () => void seek.then((seek) => seek.end()),
    };
  }

  /** Whether it was a frame. */
  take(bytes: Uint8Array): boolean {
    if ((bytes[0] ?? 0) < FIRST_OF_FRAMES) return false;
    this.open?.frame(bytes);
    return true;
  }

  relay(isUp: boolean): void {
    this.open?.relay(isUp);
    if (isUp && !this.open) void this.openIfHolding().catch(() => undefined);
  }

  /** Those there are: none as long as their code is not needed. */
  get present(): Open | undefined {
    return this.open;
  }

  /** What this browser keeps from before, others may need. */
  private async openIfHolding(): Promise<void> {
    const { pool } = this.host;
    if (!pool || !Shelf.isPossible()) return;
    this.kept = largeOf(pool.base).catch(() => new Set());
    if ((await this.kept).size > 0) await this.opened();
  }

  private async seekLater(pieces: Pieces, answer: Sought): Promise<Seek> {
    const open = await this.opened().catch(() => undefined);
    return (open?.swarm ?? { seek: streamAll }).seek(pieces, answer);
  }

  private keepLater(pieces: Pieces, answer: Sought): Seek {
    const came: [number, Uint8Array<ArrayBuffer>][] = [];
    const keep = ({ swarm }: Open) => came.forEach((piece) => swarm?.keep(pieces, ...piece));
    streamAll(pieces, answer);
    return {
      keep: (...piece) => void came.push(piece),
      end: () => void this.opened().then(keep, () => undefined),
    };
  }

  private opened(): Promise<Open> {
    this.loading ??= this.load().catch((error: unknown) => {
      this.loading = undefined;
      console.error(`crews cannot be joined: ${String(error)}`);
      throw error;
    });
    return this.loading;
  }

  private async load(): Promise<Open> {
    const code = (await import(this.places.crewModule)) as typeof import("./crew/index.js");
    const open = await code.open(this.places.crewWasm, this.places.base, this.host);
    this.open = open;
    open.relay(this.host.joined() !== undefined);
    for (const order of this.waiting.splice(0)) open.act(order);
    return open;
  }

  private fail(): void {
    const message = "this tab could not load what crews need";
    for (const order of this.waiting.splice(0)) {
      if (!("crew" in order)) continue;
      const { crew } = order;
      this.host.tellBrain((brain, now) => brain.crewFailed(now, crew, 0, { kind: "unable", message }));
    }
  }
}

async function largeOf(base: string): Promise<Set<string>> {
  const name = poolName(base);
  const kept = (await shelved()).filter(({ pool, size, kind }) => pool === name && size >= SHARED_FROM && kind !== "part");
  return new Set(kept.map(({ hash }) => hash));
}
