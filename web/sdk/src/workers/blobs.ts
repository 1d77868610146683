/** Inputs in, results out: the HTTP half of a node, used by every engine Worker. */

import type { Hashing } from "./hashing.js";
import type { UnitFailure, UnitResult, UnitSpan } from "./messages.js";

/** Blobs up to this size are fetched whole and kept for the job; of larger ones only what a unit needs. */
const KEEP_WHOLE = 4 << 20;
/** Memory that large inputs pass through: large enough to make few calls, small enough to stay in a cache. */
const PIECE = 1 << 20;
/** Results up to this size ride inside the node's message (`MAX_INLINE_BYTES` of the protocol). */
const MAX_INLINE = 16 << 10;
/** How long a restarting coordinator is waited for before the unit counts as failed. */
const PATIENCE_MS = 20_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;

export interface StoredBlob {
  hash: string;
  size: number;
}

/** A failure on its way out of nested calls. */
export class UnitError extends Error {
  constructor(readonly failure: UnitFailure) {
    super(failure.message);
  }
}

export class Blobs {
  private readonly kept = new Map<string, Promise<ArrayBuffer>>();
  private readonly users = new Map<number, Set<string>>();
  private readonly spare: ArrayBuffer[] = [];
  private sessionChanged: (() => void)[] = [];

  constructor(
    private readonly base: string,
    private session: string,
    private readonly hashing: Hashing,
  ) {}

  setSession(session: string): void {
    this.session = session;
    for (const wake of this.sessionChanged.splice(0)) wake();
  }

  /** All of a blob, kept until the job is forgotten. */
  whole(job: number, blob: StoredBlob): Promise<ArrayBuffer> {
    const users = this.users.get(job) ?? new Set();
    this.users.set(job, users.add(blob.hash));
    let bytes = this.kept.get(blob.hash);
    if (!bytes) {
      // Without a signal: other units wait for the same bytes.
      bytes = this.fetchWhole(blob);
      this.kept.set(blob.hash, bytes);
      bytes.catch(() => this.kept.delete(blob.hash));
    }
    return bytes;
  }

  /** All of a blob, not kept: the caller does. */
  async all(blob: StoredBlob, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.fetchWhole(blob, signal));
  }

  async range(
    job: number,
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array<ArrayBuffer>> {
    if (to > blob.size || from > to) {
      throw fetchFailed(blob, `bytes ${from} to ${to} were asked for, it has ${blob.size}`);
    }
    if (from === to) return new Uint8Array(0);
    if (blob.size <= KEEP_WHOLE) {
      return new Uint8Array(await this.whole(job, blob), from, to - from);
    }
    return new Uint8Array(await this.fetchRange(blob, from, to, signal));
  }

  /** Some bytes of a blob that nobody needs again. */
  async part(blob: StoredBlob, from: number, to: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    if (to - from === blob.size) return this.all(blob, signal);
    return new Uint8Array(await this.fetchRange(blob, from, to, signal));
  }

  /** Hands on a part of a blob in pieces of a whole number of words, all but the last; the piece is used again. */
  async stream(
    job: number,
    blob: StoredBlob,
    from: number,
    to: number,
    write: (at: number, bytes: Uint8Array<ArrayBuffer>) => void,
    signal?: AbortSignal,
  ): Promise<void> {
    if (blob.size <= KEEP_WHOLE || to - from <= PIECE) {
      write(0, await this.range(job, blob, from, to, signal));
      return;
    }
    const answer = await this.open(blob, from, to, signal);
    const hasher = to - from === blob.size ? this.hashing.begin() : undefined;
    let size: number;
    try {
      size = await this.pour(answer, (at, bytes) => {
        hasher?.update(bytes);
        write(at, bytes);
      });
      if (hasher && size === blob.size) mustBeItself(blob, hasher.hex());
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof TypeError) throw fetchFailed(blob, `the connection broke: ${String(error)}`);
      throw error;
    } finally {
      hasher?.free();
    }
    if (size !== to - from) throw fetchFailed(blob, `${size} bytes came, expected ${to - from}`);
  }

  /** One piece of memory, kept warm in the processor's cache, takes all bytes that arrive. */
  private async pour(
    answer: Response,
    write: (at: number, bytes: Uint8Array<ArrayBuffer>) => void,
  ): Promise<number> {
    const reader = answer.body?.getReader({ mode: "byob" });
    if (!reader) return 0;
    let memory = this.spare.pop() ?? new ArrayBuffer(PIECE);
    let filled = 0;
    let at = 0;
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(memory, filled));
      if (value) {
        memory = value.buffer;
        filled += value.byteLength;
      }
      if (filled === PIECE || (done && filled > 0)) {
        write(at, new Uint8Array(memory, 0, filled));
        at += filled;
        filled = 0;
      }
      if (!done) continue;
      if (memory.byteLength === PIECE) this.spare.push(memory);
      return at;
    }
  }

  forget(job: number): void {
    const hashes = this.users.get(job) ?? new Set();
    this.users.delete(job);
    for (const hash of hashes) {
      if (![...this.users.values()].some((users) => users.has(hash))) this.kept.delete(hash);
    }
  }

  /** Stores a unit's result, or leaves it inline if it is small. */
  async deliver(
    unit: Pick<UnitSpan, "job" | "attempt">,
    bytes: Uint8Array<ArrayBuffer>,
    signal?: AbortSignal,
  ): Promise<UnitResult> {
    if (bytes.byteLength <= MAX_INLINE) return { inline: bytes.slice() };
    const path = `/node/results/${unit.job}/${unit.attempt}`;
    const answer = await this.put(path, bytes, `storing the result of unit ${unit.attempt}`, signal);
    return (await answer.json()) as StoredBlob;
  }

  async put(path: string, bytes: Uint8Array<ArrayBuffer>, what: string, signal?: AbortSignal): Promise<Response> {
    const answer = await this.request(path, { method: "PUT", body: bytes }, signal);
    if (!answer.ok) throw await refused(what, answer);
    return answer;
  }

  /** Of a part only the length can be checked, of all of it the hash too. */
  private async fetchWhole(blob: StoredBlob, signal?: AbortSignal): Promise<ArrayBuffer> {
    const bytes = await this.fetchRange(blob, 0, blob.size, signal);
    mustBeItself(blob, this.hashing.hex(new Uint8Array(bytes)));
    return bytes;
  }

  private async fetchRange(
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<ArrayBuffer> {
    const answer = await this.open(blob, from, to, signal);
    let bytes: ArrayBuffer;
    try {
      bytes = await answer.arrayBuffer();
    } catch (error) {
      signal?.throwIfAborted();
      throw fetchFailed(blob, `the connection broke: ${String(error)}`);
    }
    if (bytes.byteLength === to - from) return bytes;
    throw fetchFailed(blob, `${bytes.byteLength} bytes came, expected ${to - from}`);
  }

  private async open(
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<Response> {
    const isPart = to - from < blob.size;
    const headers: Record<string, string> = isPart ? { range: `bytes=${from}-${to - 1}` } : {};
    // What a unit needs is needed once: the browser's cache would only cost time.
    const init: RequestInit = { headers, cache: isPart ? "no-store" : "default" };
    const answer = await this.request(`/node/blobs/${blob.hash}`, init, signal);
    if (answer.status === (isPart ? 206 : 200)) return answer;
    throw await refused(`fetching blob ${blob.hash}`, answer);
  }

  /** Retries while the coordinator is away or has not yet given this connection its session. */
  private async request(path: string, init: RequestInit, signal?: AbortSignal): Promise<Response> {
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
        problem = `${path} cannot be reached: ${String(error)}`;
      }
      if (performance.now() + wait > until) throw new UnitError({ kind: "fetch", message: problem });
      await this.pause(wait);
      signal?.throwIfAborted();
    }
  }

  private pause(millis: number): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, millis);
      this.sessionChanged.push(resolve);
    });
  }
}

function mustBeItself(blob: StoredBlob, hash: string): void {
  if (hash !== blob.hash) throw fetchFailed(blob, `other bytes came, of hash ${hash}`);
}

function fetchFailed(blob: StoredBlob, message: string): UnitError {
  return new UnitError({ kind: "fetch", message: `blob ${blob.hash}: ${message}` });
}

async function refused(what: string, answer: Response): Promise<UnitError> {
  const said = await answer.text().catch(() => "");
  return new UnitError({ kind: "fetch", message: `${what}: ${answer.status} ${said.slice(0, 300)}` });
}
