/** Requests with a key, errors as exceptions, and server-sent events as a stream. */

/** What the coordinator refused, or that it could not be reached (`status` 0, code `unreachable`). */
export class ShoalError extends Error {
  override readonly name = "ShoalError";
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

export interface Call {
  method?: string;
  headers?: Record<string, string>;
  body?: BodyInit;
  signal?: AbortSignal | undefined;
  /** Statuses besides 2xx that the caller understands. */
  accept?: readonly number[];
}

export class Http {
  constructor(
    /** Without a slash at the end. */
    readonly base: string,
    readonly key: string,
  ) {}

  async json<T>(path: string, call: Call = {}): Promise<T> {
    return (await this.call(path, call)).json() as Promise<T>;
  }

  /** With a key, a request that is sent again is taken once. */
  async post<T>(path: string, body: unknown, signal?: AbortSignal, key?: string): Promise<T> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (key !== undefined) headers["idempotency-key"] = key;
    return this.json(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  }

  async bytes(path: string, call: Call = {}): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await this.call(path, call)).arrayBuffer());
  }

  async call(path: string, call: Call = {}): Promise<Response> {
    const { method = "GET", headers = {}, body, signal, accept = [] } = call;
    let answer: Response;
    try {
      answer = await fetch(this.base + path, {
        method,
        headers: { ...headers, authorization: `Bearer ${this.key}` },
        body: body ?? null,
        signal: signal ?? null,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ShoalError(0, "unreachable", `cannot reach ${this.base}: ${String(error)}`);
    }
    if (answer.ok || accept.includes(answer.status)) return answer;
    throw await refusal(answer);
  }

  /** Yields events until the stream ends. */
  async *events(path: string, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
    const answer = await this.call(path, { headers: { accept: "text/event-stream" }, signal });
    if (answer.body) yield* parseEvents(answer.body);
  }
}

export interface ServerEvent {
  event: string;
  data: string;
}

/** The `text/event-stream` format: fields in lines, events parted by an empty line. */
export async function* parseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = "";
  let event = "message";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield { event, data: data.join("\n") };
          event = "message";
          data = [];
        } else if (line.startsWith("event:")) {
          event = line.slice(6).trim();
        } else if (line.startsWith("data:")) {
          data.push(line.slice(line[5] === " " ? 6 : 5));
        }
      }
    }
  } finally {
    // Also when the caller stops early: the connection must not stay open.
    await reader.cancel().catch(() => undefined);
  }
}

async function refusal(answer: Response): Promise<ShoalError> {
  const text = await answer.text().catch(() => "");
  try {
    const { error, code } = JSON.parse(text) as {
      error: string | { code: string; message: string; details?: Record<string, unknown> };
      code?: string;
    };
    // As clients of the Open Inference Protocol expect it.
    if (typeof error === "string") return new ShoalError(answer.status, code ?? "http", error);
    return new ShoalError(answer.status, error.code, error.message, error.details);
  } catch {
    const said = text.slice(0, 200) || answer.statusText;
    return new ShoalError(answer.status, "http", `${answer.url} answered ${answer.status}: ${said}`);
  }
}
