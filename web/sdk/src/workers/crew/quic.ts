/** A node's way for frames by QUIC (WebTransport), beside its socket: when to have it is the brain's business. */

import type { BrainOutput } from "../../../generated/brain/brain.js";
import { QUIC_ACCEPTED } from "../../constants.js";
import { Frames } from "./frames.js";

/** Where UDP is closed nothing answers at all. */
const OPEN_WITHIN_MS = 5_000;
/** Frames waiting to leave. More are dropped, as on the socket; links repeat them. */
const MOST_WAITING = 8 << 20;

export interface QuicEvents {
  up: () => void;
  /** It did not open, or is gone. Not said of one that was closed here. */
  down: () => void;
  frame: (frame: Uint8Array) => void;
}

export type QuicOrder = Extract<BrainOutput, { type: "openQuic" }>;

export class Quic {
  private present: Way | undefined;

  constructor(
    private readonly base: string,
    private readonly on: QuicEvents,
  ) {}

  open(order: QuicOrder): void {
    this.close();
    const way = new Way();
    this.present = way;
    const ifPresent = (act: () => void) => {
      if (this.present === way) act();
    };
    const frame = (frame: Uint8Array) => ifPresent(() => this.on.frame(frame));
    way
      .carry(this.base, order, () => ifPresent(this.on.up), frame)
      // Whatever ended it: the socket is there.
      .catch(() => undefined)
      .finally(() => {
        way.close();
        ifPresent(() => {
          this.present = undefined;
          this.on.down();
        });
      });
  }

  close(): void {
    const { present } = this;
    this.present = undefined;
    present?.close();
  }

  /** Whether there is such a way. A frame for which there is no room is gone all the same. */
  pass(frame: Uint8Array<ArrayBuffer>): boolean {
    return this.present?.pass(frame) ?? false;
  }
}

class Way {
  private transport: WebTransport | undefined;
  private writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>> | undefined;
  private waiting = 0;
  private isUp = false;

  /** Opens it, says so, and gives all frames that come; ends with it. */
  async carry(base: string, order: QuicOrder, up: () => void, frame: (frame: Uint8Array) => void): Promise<void> {
    if (!("WebTransport" in globalThis)) throw new Error("this browser has no WebTransport");
    const serverCertificateHashes = order.hashes.map((value) => ({
      algorithm: "sha-256",
      value: value as Uint8Array<ArrayBuffer>,
    }));
    const url = `https://${new URL(base).hostname}:${order.port}${order.path}`;
    const transport = new WebTransport(url, { serverCertificateHashes });
    this.transport = transport;
    // Said of `ready` and of whatever is under way as well.
    transport.closed.catch(() => undefined);
    const late = setTimeout(() => this.close(), OPEN_WITHIN_MS);
    try {
      await transport.ready;
      const { readable, writable } = await transport.createBidirectionalStream();
      const writer = writable.getWriter() as WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
      await writer.write(order.greeting as Uint8Array<ArrayBuffer>);
      const frames = new Frames(readable.getReader() as ReadableStreamDefaultReader<Uint8Array>);
      if ((await frames.byte()) !== QUIC_ACCEPTED) throw new Error("the coordinator does not take frames by QUIC");
      clearTimeout(late);
      this.writer = writer;
      this.isUp = true;
      up();
      await frames.each(frame);
    } finally {
      clearTimeout(late);
      this.isUp = false;
    }
  }

  close(): void {
    this.isUp = false;
    try {
      this.transport?.close();
    } catch {
      // It was never open.
    }
  }

  pass(frame: Uint8Array<ArrayBuffer>): boolean {
    if (!this.isUp || !this.writer) return false;
    const { byteLength } = frame;
    if (this.waiting + byteLength > MOST_WAITING) return true;
    this.waiting += byteLength;
    this.writer.write(frame).then(
      () => (this.waiting -= byteLength),
      () => (this.isUp = false),
    );
    return true;
  }
}
