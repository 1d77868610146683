/** Inputs in, results out: the HTTP half of a node, used by every engine Worker. */

import type { UnitFailure, UnitResult, UnitSpan } from "./messages";

/** Blobs up to this size are fetched whole and kept for the job; of larger ones only what a unit needs. */
const KEEP_WHOLE = 4 << 20;
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
  private sessionChanged: (() => void)[] = [];

  constructor(
    private readonly base: string,
    private session: string,
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
      bytes = this.fetchRange(blob, 0, blob.size);
      this.kept.set(blob.hash, bytes);
      bytes.catch(() => this.kept.delete(blob.hash));
    }
    return bytes;
  }

  /** All of a blob, not kept: the caller does. */
  async all(blob: StoredBlob, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.fetchRange(blob, 0, blob.size, signal));
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

  forget(job: number): void {
    const hashes = this.users.get(job) ?? new Set();
    this.users.delete(job);
    for (const hash of hashes) {
      if (![...this.users.values()].some((users) => users.has(hash))) this.kept.delete(hash);
    }
  }

  /** Stores a unit's result, or leaves it inline if it is small. */
  async deliver(
    unit: UnitSpan,
    bytes: Uint8Array<ArrayBuffer>,
    signal?: AbortSignal,
  ): Promise<UnitResult> {
    if (bytes.byteLength <= MAX_INLINE) return { inline: bytes };
    const path = `/node/results/${unit.job}/${unit.attempt}`;
    const answer = await this.request(path, { method: "PUT", body: bytes }, signal);
    if (!answer.ok) throw await refused(`storing the result of unit ${unit.attempt}`, answer);
    return (await answer.json()) as StoredBlob;
  }

  private async fetchRange(
    blob: StoredBlob,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<ArrayBuffer> {
    const part = to - from < blob.size;
    const headers: Record<string, string> = part ? { range: `bytes=${from}-${to - 1}` } : {};
    const answer = await this.request(`/node/blobs/${blob.hash}`, { headers }, signal);
    if (answer.status !== (part ? 206 : 200)) throw await refused(`fetching blob ${blob.hash}`, answer);
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

function fetchFailed(blob: StoredBlob, message: string): UnitError {
  return new UnitError({ kind: "fetch", message: `blob ${blob.hash}: ${message}` });
}

async function refused(what: string, answer: Response): Promise<UnitError> {
  const said = await answer.text().catch(() => "");
  return new UnitError({ kind: "fetch", message: `${what}: ${answer.status} ${said.slice(0, 300)}` });
}
