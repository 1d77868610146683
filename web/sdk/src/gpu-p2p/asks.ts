/** The importer's side: what was asked of the owner and is not answered yet. */

import { asPeerError, GPUPeerError } from "./error.js";
import type { Post } from "./exports.js";
import { Landing, Sending, snapshot } from "./transfer.js";
import { type Binding, type Claim, dataChannel, type Words } from "./words.js";

/** Transfers asked for at a time; others wait. Half of what an owner serves, so that it need not refuse. */
const MOST_AT_ONCE = 4;

/** What an owner answered. */
export interface Read {
  version: number;
  hash: string;
  /** Whether the buffer got new contents. */
  isNew: boolean;
}

export interface Run {
  code: string;
  entryPoint: string;
  constants: Record<string, number>;
  workgroups: number[];
  bindings: Binding[];
}

interface Asked {
  answer: (words: Words & { is: "same" | "wrote" | "ran" }) => void;
  fail: (error: GPUPeerError) => void;
  part?: (part: Words & { is: "part" }, bytes: Uint8Array) => void;
  sending?: Sending;
}

/** Of all connections of this page, so that a late answer of an old one means nothing to a new one. */
let lastId = 0;

export class Asks {
  private readonly asked = new Map<number, Asked>();
  private readonly queue: (() => void)[] = [];
  private transfers = 0;
  private ended: GPUPeerError | undefined;

  constructor(
    private readonly device: GPUDevice,
    private readonly post: Post,
  ) {}

  /** Fetches the newest version into the buffer, if it is another one than `have`. */
  async read(claim: Claim, have: number, into: GPUBuffer): Promise<Read> {
    return this.inTurn(async () => {
      const landing = await Landing.open(this.device, into.size);
      const id = ++lastId;
      try {
        const whole = new Promise<Read>((resolve, reject) => {
          const part = (words: Words & { is: "part" }, bytes: Uint8Array) => {
            try {
              const isWhole = landing.take(words, bytes);
              this.post({ is: "took", id, fromOwner: true, bytes: bytes.byteLength });
              if (isWhole) resolve({ version: words.version, hash: words.hash, isNew: true });
            } catch (error) {
              reject(error);
            }
          };
          const answer = (words: Words & { is: "same" | "wrote" | "ran" }) => {
            if (words.is === "same") resolve({ version: words.version, hash: words.hash, isNew: false });
          };
          this.ask(id, { answer, fail: reject, part });
          this.post({ is: "read", id, have, ...claim });
        });
        const read = await whole;
        if (read.isNew) await landing.commit(into, () => undefined);
        return read;
      } finally {
        this.asked.delete(id);
        landing.free();
      }
    });
  }

  /** Sends the buffer's contents as a new version. Answers with its number. */
  async write(claim: Claim, onto: number, from: GPUBuffer): Promise<{ version: number; hash: string }> {
    return this.inTurn(async () => {
      const copy = await snapshot(this.device, from);
      const id = ++lastId;
      const channel = dataChannel(claim.buffer);
      const sending = new Sending((part, bytes) => {
        this.post({ is: "part", id, toOwner: true, version: 0, ...part }, { bytes, channel });
      });
      try {
        const wrote = new Promise<number>((resolve, reject) => {
          const answer = (words: Words & { is: "same" | "wrote" | "ran" }) => words.is === "wrote" && resolve(words.version);
          const fail = (error: GPUPeerError) => {
            sending.fail(error);
            reject(error);
          };
          this.ask(id, { answer, fail, sending });
          // On the parts' channel, so that it is there before them.
          this.post({ is: "write", id, size: from.size, onto, ...claim }, { channel });
        });
        const [hash, version] = await Promise.all([sending.run(copy.bytes), wrote]);
        return { version, hash };
      } finally {
        this.asked.delete(id);
        copy.free();
      }
    });
  }

  async run(run: Run): Promise<{ buffer: number; version: number }[]> {
    const id = ++lastId;
    try {
      return await new Promise((resolve, reject) => {
        this.ask(id, { answer: (words) => words.is === "ran" && resolve(words.versions), fail: reject });
        this.post({ is: "run", id, ...run });
      });
    } finally {
      this.asked.delete(id);
    }
  }

  /** The owner answers. */
  hear(words: Words & { is: "same" | "wrote" | "ran" | "failed" }): void {
    const asked = this.asked.get(words.id);
    if (words.is === "failed") asked?.fail(new GPUPeerError(words.code, words.message));
    else asked?.answer(words);
  }

  part(part: Words & { is: "part" }, bytes: Uint8Array): void {
    const take = this.asked.get(part.id)?.part;
    if (take) take(part, bytes);
    // Not wanted any more: the owner must not wait for it to be taken.
    else this.post({ is: "took", id: part.id, fromOwner: true, bytes: bytes.byteLength });
  }

  took(id: number, bytes: number): void {
    this.asked.get(id)?.sending?.took(bytes);
  }

  close(error: GPUPeerError): void {
    this.ended = error;
    for (const { fail } of this.asked.values()) fail(error);
    for (const begin of this.queue.splice(0)) begin();
  }

  private ask(id: number, asked: Asked): void {
    if (this.ended) throw this.ended;
    this.asked.set(id, asked);
  }

  private async inTurn<T>(transfer: () => Promise<T>): Promise<T> {
    while (this.transfers >= MOST_AT_ONCE && !this.ended) await new Promise<void>((begin) => this.queue.push(begin));
    if (this.ended) throw this.ended;
    this.transfers += 1;
    try {
      return await transfer();
    } catch (error) {
      // What a dead connection or device breaks has that reason.
      throw this.ended ?? asPeerError(error);
    } finally {
      this.transfers -= 1;
      this.queue.shift()?.();
    }
  }
}
