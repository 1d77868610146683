/** Bytes out of a GPU buffer into parts, and parts into a GPU buffer. A buffer gets all of a version or nothing of it. */

import { PEER_PART_BYTES, PEER_WINDOW_BYTES } from "../constants.js";
import { GPUPeerError } from "./error.js";
import { beginHash, type Hashing } from "./hashing.js";
import { COPY_DST, COPY_SRC, MAP_READ, MAP_WRITE, MODE_READ } from "./usage.js";

/** A copy of a buffer at one moment, in memory. */
export interface Snapshot {
  bytes: Uint8Array;
  free(): void;
}

/** `now` is called in the moment the copy is ordered: what was submitted before is in it, what comes later is not. */
export async function snapshot(device: GPUDevice, buffer: GPUBuffer, now: () => void = () => undefined): Promise<Snapshot> {
  const { size } = buffer;
  const staging = device.createBuffer({ size, usage: MAP_READ | COPY_DST });
  try {
    await checked(device, "the buffer cannot be read", () => {
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
      device.queue.submit([encoder.finish()]);
      now();
    });
    await staging.mapAsync(MODE_READ);
    return { bytes: new Uint8Array(staging.getMappedRange()), free: () => staging.destroy() };
  } catch (error) {
    staging.destroy();
    throw error;
  }
}

export interface Part {
  offset: number;
  last: boolean;
  /** Of the whole, with the last part. */
  hash: string;
}

/** Says a snapshot part by part, no faster than they are taken. */
export class Sending {
  private waiting = 0;
  private wake: () => void = () => undefined;
  private failure: GPUPeerError | undefined;

  constructor(private readonly say: (part: Part, bytes: Uint8Array) => void) {}

  /** `known`: the hash, if it is known. Answers with it. */
  async run(bytes: Uint8Array, known?: string): Promise<string> {
    const hashing = known === undefined ? await beginHash() : undefined;
    for (let offset = 0; offset < bytes.byteLength; ) {
      const part = bytes.subarray(offset, offset + PEER_PART_BYTES);
      hashing?.update(part);
      while (this.waiting + part.byteLength > PEER_WINDOW_BYTES && !this.failure) {
        await new Promise<void>((resolve) => (this.wake = resolve));
      }
      if (this.failure) throw this.failure;
      const last = offset + part.byteLength === bytes.byteLength;
      if (last) known ??= hashing?.end() ?? "";
      this.waiting += part.byteLength;
      this.say({ offset, last, hash: last ? (known ?? "") : "" }, part);
      offset += part.byteLength;
    }
    return known ?? "";
  }

  took(bytes: number): void {
    this.waiting = Math.max(0, this.waiting - bytes);
    this.wake();
  }

  fail(error: GPUPeerError): void {
    this.failure = error;
    this.wake();
  }
}

/** Where parts arrive. Nothing of them is in the buffer before `commit`. */
export class Landing {
  /** Made with the first part: often there is nothing new. */
  private staging: GPUBuffer | undefined;
  private mapped = new Uint8Array();
  private at = 0;

  private constructor(
    private readonly device: GPUDevice,
    readonly size: number,
    private readonly hashing: Hashing,
  ) {}

  static async open(device: GPUDevice, size: number): Promise<Landing> {
    return new Landing(device, size, await beginHash());
  }

  /** Whether it was the last; checks that the whole is what was sent. */
  take({ offset, last, hash }: Part, bytes: Uint8Array): boolean {
    const end = offset + bytes.byteLength;
    if (offset !== this.at || end > this.size || last !== (end === this.size)) {
      const found = `bytes ${offset} to ${end}${last ? ", the last," : ""} of ${this.size}`;
      throw new GPUPeerError("protocol", `the peer sent ${found}; expected to continue at byte ${this.at}`);
    }
    if (!this.staging) this.makeRoom();
    this.mapped.set(bytes, offset);
    this.hashing.update(bytes);
    this.at = end;
    if (!last) return false;
    const found = this.hashing.end();
    if (found !== "" && hash !== "" && found !== hash) {
      throw new GPUPeerError("hash", `the bytes that arrived have the hash ${found}, but the peer sent ${hash}`);
    }
    return true;
  }

  /** `now` is called in the moment the buffer gets its new contents. */
  async commit(buffer: GPUBuffer, now: () => void): Promise<void> {
    const { staging } = this;
    if (!staging) return;
    staging.unmap();
    await checked(this.device, "the buffer cannot be written", () => {
      const encoder = this.device.createCommandEncoder();
      encoder.copyBufferToBuffer(staging, 0, buffer, 0, this.size);
      this.device.queue.submit([encoder.finish()]);
      now();
    });
    this.free();
  }

  free(): void {
    this.staging?.destroy();
    this.staging = undefined;
  }

  private makeRoom(): void {
    const usage = MAP_WRITE | COPY_SRC;
    this.staging = this.device.createBuffer({ size: this.size, usage, mappedAtCreation: true });
    this.mapped = new Uint8Array(this.staging.getMappedRange());
  }
}

/** Says what a device would only tell those who listen for it. */
export async function checked<T>(device: GPUDevice, what: string, act: () => T): Promise<T> {
  device.pushErrorScope("out-of-memory");
  device.pushErrorScope("validation");
  let done: T;
  const scopes = () => [device.popErrorScope(), device.popErrorScope()];
  try {
    done = act();
  } catch (error) {
    void Promise.allSettled(scopes());
    throw new GPUPeerError("usage", `${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
  const errors = await Promise.all(scopes());
  const error = errors.find((error) => error !== null);
  if (error) throw new GPUPeerError("usage", `${what}: ${error.message}`);
  return done;
}
