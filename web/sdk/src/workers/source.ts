/** The coordinator as Workers ask it: requests wait while it restarts, and bytes go on where a connection broke. */

import { PIECE_BYTES } from "../constants.js";
import { fetchFailed, refused, type StoredBlob, UnitError } from "./failure.js";

/** Memory that large inputs pass through: large enough to make few calls, small enough to stay in a cache. A piece of
 * a blob fits exactly. */
export const PIECE = PIECE_BYTES;
/** How long a restarting coordinator is waited for before the unit counts as failed. */
const PATIENCE_MS = 20_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;
/** Connections in a row that break before a piece came: more would only be the same again. */
const BREAKS = 4;

/** Takes bytes whose memory is used again after it, unless it was given away. */
export type Write = (at: number, bytes: Uint8Array<ArrayBuffer>) => void;

/** The connection ended before all bytes came. */
class Broken extends Error {}

export class Source {
  private readonly spare: ArrayBuffer[] = [];
  private sessionChanged: (() => void)[] = [];

  constructor(
    private readonly base: string,
    private session: string,
    /** Where blobs are: a node's session opens these, a client's key others. */
    private readonly blobs = "/node/blobs",
  ) {}

  setSession(session: string): void {
    this.session = session;
    for (const wake of this.sessionChanged.splice(0)) wake();
  }

  /** Some bytes of a blob, at once. Only their number is checked. */
  async range(blob: StoredBlob, from: number, to: number, signal?: AbortSignal): Promise<ArrayBuffer> {
    const answer = await this.open(blob, from, to, signal);
    let bytes: ArrayBuffer;
    try {
      bytes = await answer.arrayBuffer();
    } catch (error) {
      signal?.throwIfAborted();
      throw fetchFailed(blob, `the connection broke: ${String(error)}`);
    }
    if (bytes.byteLength === to - from) return bytes;
    throw fetchFailed(blob, `received ${bytes.byteLength} bytes, expected ${to - from}`);
  }

  /** Some bytes of a blob in pieces of one size, all but the last, each with its place in the blob. A connection that
   * breaks is followed by one for the rest. */
  async pour(blob: StoredBlob, from: number, to: number, write: Write, signal?: AbortSignal): Promise<void> {
    for (let at = from, breaks = 0; at < to; ) {
      const began = at;
      const answer = await this.open(blob, at, to, signal);
      try {
        await this.body(answer, to - at, (bytes) => {
          const { byteLength } = bytes;
          write(at, bytes);
          at += byteLength;
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof Broken)) throw error;
        breaks = at > began ? 0 : breaks + 1;
        if (breaks === BREAKS) throw fetchFailed(blob, `the connection broke at byte ${at}: ${error.message}`);
      }
    }
  }

  /** The hashes of a blob's pieces, 32 bytes each. */
  async pieces({ hash }: StoredBlob): Promise<Uint8Array> {
    const answer = await this.request(`${this.blobs}/${hash}/pieces`, { cache: "no-store" });
    if (!answer.ok) throw await refused(`the pieces of blob ${hash}`, answer);
    return new Uint8Array(await answer.arrayBuffer());
  }

  /** Retries while the coordinator is away or has not yet given this connection its session. */
  async request(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
    const until = performance.now() + PATIENCE_MS;
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      let problem: string;
      try {
        const headers = { ...init.headers, authorization: `Bearer ${this.session}` };
        const answer = await fetch(this.base + path, { ...init, headers, signal: signal ?? null });
        if (![401, 502, 503].includes(answer.status)) return answer;
        problem = `${path} answered ${answer.status}`;
      } catch (error) {
        signal?.throwIfAborted();
        problem = `cannot reach ${path}: ${String(error)}`;
      }
      if (performance.now() + wait > until) throw new UnitError({ kind: "fetch", message: problem });
      await this.pause(wait);
      signal?.throwIfAborted();
    }
  }

  private async open(blob: StoredBlob, from: number, to: number, signal?: AbortSignal): Promise<Response> {
    const isPart = to - from < blob.size;
    const headers: Record<string, string> = isPart ? { range: `bytes=${from}-${to - 1}` } : {};
    // Kept in the browser's cache it would be there twice: what is needed again is on the shelf.
    const init: RequestInit = { headers, cache: "no-store" };
    const answer = await this.request(`${this.blobs}/${blob.hash}`, init, signal);
    if (answer.status === (isPart ? 206 : 200)) return answer;
    throw await refused(`fetching blob ${blob.hash}`, answer);
  }

  /** One piece of memory, kept warm in the processor's cache, takes all bytes that arrive. */
  private async body(answer: Response, length: number, write: (bytes: Uint8Array<ArrayBuffer>) => void): Promise<void> {
    const reader = answer.body?.getReader({ mode: "byob" });
    if (!reader) throw new Broken("no bytes arrived");
    let memory = this.spare.pop() ?? new ArrayBuffer(PIECE);
    let filled = 0;
    let left = length;
    try {
      for (;;) {
        const { done, value } = await reader.read(new Uint8Array(memory, filled)).catch((error: unknown) => {
          throw new Broken(String(error));
        });
        if (value) {
          memory = value.buffer;
          filled += value.byteLength;
        }
        if (filled > left || (done && filled < left)) throw new Broken(`it did not send the ${length} bytes asked for`);
        if (filled === PIECE || (done && filled > 0)) {
          write(new Uint8Array(memory, 0, filled));
          if (memory.byteLength < PIECE) memory = this.spare.pop() ?? new ArrayBuffer(PIECE);
          left -= filled;
          filled = 0;
        }
        if (done) return;
      }
    } finally {
      // Of no use if all came; else nobody wants the rest.
      void reader.cancel().catch(() => undefined);
      if (memory.byteLength === PIECE) this.spare.push(memory);
    }
  }

  private pause(millis: number): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, millis);
      this.sessionChanged.push(resolve);
    });
  }
}
