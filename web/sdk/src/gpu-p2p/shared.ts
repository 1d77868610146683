/** A buffer that two pages know, as one of them sees it. */

import type { Asks } from "./asks.js";
import { GPUPeerError } from "./error.js";
import type { GPUBufferHandle, GPUBufferRight } from "./handle.js";
import type { Source } from "./source.js";
import type { Claim } from "./words.js";

export interface PushOptions {
  /** Refused if the owner has another version by then, so that nobody's writing is lost. Without it the last one wins. */
  onto?: number;
}

export abstract class GPUSharedBuffer {
  /** Called when the owner has a newer version. */
  onversion: ((version: number) => void) | null = null;
  private readonly waiting = new Set<() => void>();

  constructor(
    /** This page's own: the original, or a copy of it. */
    readonly buffer: GPUBuffer,
    readonly label: string,
    readonly rights: readonly GPUBufferRight[],
  ) {}

  /** Whether the original is the peer's. */
  abstract readonly remote: boolean;
  /** The version that `buffer` holds; 0: none yet. */
  abstract readonly version: number;
  /** The newest version of the owner that is known here. */
  abstract readonly newest: number;
  /** BLAKE3 of this version in hex; empty if it did not travel yet. */
  abstract readonly hash: string;
  /** Fetches the newest version, if it is newer. Nothing to do at the owner's. Answers with the version. */
  abstract pull(): Promise<number>;
  /** Makes what `buffer` holds the newest version: says so, and sends it to the owner if that is the peer. */
  abstract push(options?: PushOptions): Promise<number>;

  get size(): number {
    return this.buffer.size;
  }

  may(right: GPUBufferRight): boolean {
    return !this.remote || this.rights.includes(right);
  }

  /** Itself, or an error that says which right is missing. The owner checks it again. */
  demand(right: GPUBufferRight): this {
    if (this.may(right)) return this;
    const name = this.label === "" ? "the buffer" : `the buffer "${this.label}"`;
    throw new GPUPeerError("denied", `${name}: no right to ${right}; granted: ${this.rights.join(", ") || "nothing"}`);
  }

  /** Resolves when there is a newer version than this. */
  async newer(than = this.version): Promise<number> {
    this.check();
    while (this.newest <= than) {
      await new Promise<void>((resolve) => this.waiting.add(resolve));
      this.check();
    }
    return this.newest;
  }

  /** Fails if nothing can come any more. */
  protected abstract check(): void;

  /** For the connection: there is news of it. */
  protected wake(): void {
    for (const resolve of [...this.waiting]) resolve();
    this.waiting.clear();
  }
}

/** The owner's view. */
export class OwnBuffer extends GPUSharedBuffer {
  readonly remote = false;
  /** Hears of no more versions. */
  readonly stop: () => void;

  constructor(
    private readonly source: Source,
    label: string,
    rights: readonly GPUBufferRight[],
  ) {
    super(source.buffer, label, rights);
    this.stop = source.watch((version) => {
      this.onversion?.(version);
      this.wake();
    });
  }

  get version(): number {
    return this.source.version;
  }

  get newest(): number {
    return this.source.version;
  }

  get hash(): string {
    return this.source.hash ?? "";
  }

  async pull(): Promise<number> {
    return this.source.version;
  }

  async push({ onto }: PushOptions = {}): Promise<number> {
    const { version } = this.source;
    if (onto === undefined || onto === version) return this.source.changed();
    throw new GPUPeerError("stale", `the buffer is at version ${version}, but this write is based on version ${onto}`);
  }

  protected check(): void {
    // The original outlives every connection.
  }
}

/** The importer's view: a copy. */
export class ImportedBuffer extends GPUSharedBuffer {
  readonly remote = true;
  version = 0;
  newest: number;
  hash = "";
  private readonly claim: Claim;
  private ended: GPUPeerError | undefined;

  constructor(
    readonly handle: GPUBufferHandle,
    buffer: GPUBuffer,
    private readonly asks: Asks,
  ) {
    super(buffer, handle.label, handle.rights);
    this.newest = handle.version;
    this.claim = { buffer: handle.buffer, token: handle.token };
  }

  async pull(): Promise<number> {
    this.check();
    const read = await this.fetch(this.buffer, this.version);
    [this.version, this.hash] = [read.version, read.hash];
    return this.version;
  }

  async push({ onto = -1 }: PushOptions = {}): Promise<number> {
    const wrote = await this.send(this.buffer, onto);
    [this.version, this.hash] = [wrote.version, wrote.hash];
    return this.version;
  }

  /** Into any buffer of the same size. */
  async fetch(into: GPUBuffer, have: number) {
    this.check();
    const read = await this.asks.read(this.claim, have, into);
    this.heard(read.version);
    return read;
  }

  /** From any buffer of the same size. */
  async send(from: GPUBuffer, onto = -1) {
    this.check();
    const wrote = await this.asks.write(this.claim, onto, from);
    this.heard(wrote.version);
    return wrote;
  }

  /** The owner has this version. */
  heard(version: number): void {
    if (version <= this.newest) return;
    this.newest = version;
    this.onversion?.(version);
    this.wake();
  }

  /** The connection is over, or the handle was taken back. */
  end(error: GPUPeerError): void {
    this.ended ??= error;
    this.wake();
  }

  protected check(): void {
    if (this.ended) throw this.ended;
  }
}
