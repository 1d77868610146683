/** Frames off a stream: each is as long as its header says. */

import { FRAME_VERSION, HEADER_BYTES, LENGTH_AT, MAX_FRAME_BYTES } from "../../constants.js";

export class Frames {
  /** Read and not used yet. */
  private rest: Uint8Array = new Uint8Array(0);

  constructor(private readonly reader: ReadableStreamDefaultReader<Uint8Array>) {}

  /** The next byte, before any frame; nothing at the end. */
  async byte(): Promise<number | undefined> {
    while (this.rest.byteLength === 0) if (!(await this.more())) return undefined;
    const [first] = this.rest;
    this.rest = this.rest.subarray(1);
    return first;
  }

  /** Gives frames until the stream ends. What is no frame is an error. */
  async each(frame: (frame: Uint8Array) => void): Promise<void> {
    const header = new Uint8Array(HEADER_BYTES);
    for (;;) {
      if (!(await this.fill(header, 0))) return;
      const length = new DataView(header.buffer).getUint32(LENGTH_AT, true);
      if (header[0] !== FRAME_VERSION || length > MAX_FRAME_BYTES - HEADER_BYTES) throw new Error("no frame");
      const whole = new Uint8Array(HEADER_BYTES + length);
      whole.set(header);
      if (!(await this.fill(whole, HEADER_BYTES))) return;
      frame(whole);
    }
  }

  /** Fills `into` from `at` on; whether there was enough. */
  private async fill(into: Uint8Array, at: number): Promise<boolean> {
    while (at < into.byteLength) {
      if (this.rest.byteLength === 0 && !(await this.more())) return false;
      const part = this.rest.subarray(0, into.byteLength - at);
      into.set(part, at);
      at += part.byteLength;
      this.rest = this.rest.subarray(part.byteLength);
    }
    return true;
  }

  private async more(): Promise<boolean> {
    const { done, value } = await this.reader.read();
    this.rest = value ?? new Uint8Array(0);
    return !done;
  }
}
