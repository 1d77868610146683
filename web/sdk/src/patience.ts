/** Waiting for a coordinator that is away: it may be restarting, or a network may be down for a while. */

import { type Http, ShoalError } from "./http.js";

/** Silence of the coordinator after which a call gives up: time to restart a machine by hand. */
export const PATIENCE_MS = 600_000;
const FIRST_PAUSE_MS = 150;
const LONGEST_PAUSE_MS = 2_000;

/** Refusals of the moment. A full disk is none: somebody has to make room. */
const PASSING = new Set(["stopping", "busy", "store_stuck", "http"]);

/** Whether trying again may help. */
export function isAbsence(error: unknown): boolean {
  if (!(error instanceof ShoalError)) return false;
  const { status, code } = error;
  return status === 0 ? code === "unreachable" || code === "broken_off" : [502, 503, 504].includes(status) && PASSING.has(code);
}

/** The tries of one call. */
export class Tries {
  private since: number | undefined;
  private wait = FIRST_PAUSE_MS;

  constructor(
    private readonly signal?: AbortSignal,
    private readonly most = PATIENCE_MS,
  ) {}

  /** Something moved: patience begins anew. */
  moved(): void {
    this.since = undefined;
    this.wait = FIRST_PAUSE_MS;
  }

  /** Waits until the next try, or throws what went wrong. */
  async again(error: unknown): Promise<void> {
    this.signal?.throwIfAborted();
    this.since ??= Date.now();
    if (!isAbsence(error) || Date.now() - this.since >= this.most) throw error;
    // Clients of a coordinator that comes back do not come all at once.
    await new Promise((resolve) => setTimeout(resolve, this.wait * (0.5 + Math.random())));
    this.wait = Math.min(LONGEST_PAUSE_MS, this.wait * 2);
    this.signal?.throwIfAborted();
  }
}

/** Makes a call that does no harm when it is made twice until it is answered. */
export async function patiently<T>(call: () => Promise<T>, signal?: AbortSignal, most?: number): Promise<T> {
  const tries = new Tries(signal, most);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      await tries.again(error);
    }
  }
}

/** All bytes of an answer. Where the connection breaks, it goes on with what is missing. */
export async function download(
  http: Http,
  path: string,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  const tries = new Tries(signal);
  let have = 0;
  for (;;) {
    try {
      const headers: Record<string, string> = have > 0 ? { range: `bytes=${have}-` } : {};
      const answer = await http.call(path, { headers, signal, accept: [416] });
      // All of it had arrived when the connection broke.
      if (answer.status === 416) return joined(parts, have);
      if (have > 0 && answer.status !== 206) {
        throw new ShoalError(0, "bad_answer", `${http.base} does not send the result in parts`);
      }
      for await (const part of pieces(answer, http.base, signal)) {
        parts.push(part);
        have += part.length;
        tries.moved();
      }
      return joined(parts, have);
    } catch (error) {
      await tries.again(error);
    }
  }
}

async function* pieces(answer: Response, base: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = answer.body?.getReader();
  while (reader) {
    let piece: ReadableStreamReadResult<Uint8Array>;
    try {
      piece = await reader.read();
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ShoalError(0, "unreachable", `the connection to ${base} broke: ${String(error)}`);
    }
    if (piece.done) return;
    yield piece.value;
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
