/** What a connection needs of whatever carries it: messages of bytes, whole and in order on each channel. */

/** A way to one peer. */
export interface PeerPort {
  /** This page's number, and the peer's. */
  readonly me: number;
  readonly peerId: number;
  /** Which way bytes go now. */
  readonly via: "relay" | "direct" | "port";
  /** Takes the buffer: it is of no use afterwards. Channels do not wait for each other. */
  send(channel: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** What comes before this is set waits for it. */
  onmessage: ((channel: number, bytes: Uint8Array<ArrayBuffer>) => void) | null;
  /** The peer is gone; why, in words. */
  onclose: ((reason: string) => void) | null;
  /** Nothing more is said. `lingers`: the peer is to hear what was said last. */
  close(lingers?: boolean): void;
}

/** A pool's mesh as a page sees it. */
export interface Mesh {
  /** This page's number in the pool: what others call it by. */
  readonly id: number;
  /** Another page wants to talk to this one. Answer with `device.createGPUConnection(peerId)`. */
  onpeer: ((peerId: number) => void) | null;
  meet(peerId: number): Promise<PeerPort>;
  /** Leaves the pool. */
  close(): void;
  /** Resolves when the pool was left, with the reason if it was not `close`. */
  readonly closed: Promise<string | undefined>;
}

/** Most that may wait for somebody to listen. Nobody says more before he is answered. */
const MOST_EARLY = 64;

/** What comes before anybody listens, kept. For those who implement `PeerPort`. */
export class Listener<Heard extends unknown[]> {
  private readonly early: Heard[] = [];
  private listener: ((...heard: Heard) => void) | null = null;

  /** `taken`: nothing of it waits any more. */
  constructor(private readonly taken: (...heard: Heard) => void = () => undefined) {}

  get(): ((...heard: Heard) => void) | null {
    return this.listener;
  }

  set(listener: ((...heard: Heard) => void) | null): void {
    this.listener = listener;
    if (listener) for (const heard of this.early.splice(0)) this.hear(...heard);
  }

  hear(...heard: Heard): void {
    if (!this.listener && this.early.length < MOST_EARLY) {
      this.early.push(heard);
      return;
    }
    // First, because the listener may give the bytes away.
    this.taken(...heard);
    this.listener?.(...heard);
  }
}

type Carried = { channel: number; bytes: ArrayBuffer } | { bye: true };

/** Over a `MessagePort`: to a frame, a Worker or another window of this browser, without any pool. */
export class MessagePeer implements PeerPort {
  readonly me = 0;
  readonly peerId = 0;
  readonly via = "port";
  private readonly messages = new Listener<[number, Uint8Array<ArrayBuffer>]>();
  private readonly ends = new Listener<[string]>();

  constructor(private readonly port: MessagePort) {
    port.onmessage = ({ data }: MessageEvent<Carried>) => {
      if ("bye" in data) this.end("the other end of the port was closed");
      else this.messages.hear(data.channel, new Uint8Array(data.bytes));
    };
    // Where browsers tell of it: the other context is gone.
    port.addEventListener("close", () => this.end("the other end of the port is gone"));
  }

  get onmessage() {
    return this.messages.get();
  }

  set onmessage(listener) {
    this.messages.set(listener);
  }

  get onclose() {
    return this.ends.get();
  }

  set onclose(listener) {
    this.ends.set(listener);
  }

  send(channel: number, { buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>): void {
    const isWhole = byteOffset === 0 && byteLength === buffer.byteLength;
    const bytes = isWhole ? buffer : buffer.slice(byteOffset, byteOffset + byteLength);
    this.port.postMessage({ channel, bytes } satisfies Carried, [bytes]);
  }

  close(): void {
    this.port.postMessage({ bye: true } satisfies Carried);
    this.port.onmessage = null;
    this.port.close();
  }

  private end(reason: string): void {
    this.port.onmessage = null;
    this.ends.hear(reason);
  }
}
