/** Two devices that share buffers. What one of them holds of the other's is a copy that travels over a link. */

import { PEER_CONTROL, PEER_VERSION } from "../constants.js";
import { Asks } from "./asks.js";
import { both, describe, type GPUPeerCapabilities } from "./capabilities.js";
import { asPeerError, GPUPeerError, type GPUPeerErrorCode } from "./error.js";
import { Exports, type Post } from "./exports.js";
import { checkHandle, type ExportOptions, type GPUBufferHandle } from "./handle.js";
import type { PeerPort } from "./port.js";
import { Runner } from "./runner.js";
import { type GPUSharedBuffer, ImportedBuffer } from "./shared.js";
import { checked } from "./transfer.js";
import { COPY_DST, COPY_SRC, MAP_READ, MAP_WRITE, STORAGE } from "./usage.js";
import { pack, unpack, type Words } from "./words.js";

/** A page that was called has this long to answer: a person may have to allow it first. */
const ANSWER_MS = 30_000;
/** Messages of the application that nobody took yet. */
const MOST_UNREAD = 1_024;

export interface GPUConnectionOptions {
  /** Features that both devices must have. */
  requiredFeatures?: readonly string[];
}

export interface RemoteRun {
  /** WGSL. */
  code: string;
  /** `main` without it. */
  entryPoint?: string;
  constants?: Record<string, number>;
  workgroups: readonly [number, number?, number?];
  /** Handles of the peer's buffers; their places in group 0 if it is a list. */
  buffers: readonly GPUBufferHandle[] | readonly { group?: number; binding: number; buffer: GPUBufferHandle }[];
}

export class GPUConnection {
  /** What both devices can do. */
  readonly capabilities: GPUPeerCapabilities;
  /** Resolves when it is over: with the reason, or with nothing if this page closed it. */
  readonly closed: Promise<GPUPeerError | undefined>;
  private readonly tellClosed: (error: GPUPeerError | undefined) => void;
  private readonly exports: Exports;
  private readonly asks: Asks;
  private readonly runner: Runner;
  private readonly imported = new Set<ImportedBuffer>();
  private readonly unread: unknown[] = [];
  private readonly receivers: { take: (value: unknown) => void; fail: (error: GPUPeerError) => void }[] = [];
  private ended: GPUPeerError | undefined;

  /** Greets the peer, and waits for its greeting. */
  static async open(device: GPUDevice, port: PeerPort, options: GPUConnectionOptions = {}): Promise<GPUConnection> {
    const mine = describe(device);
    port.send(PEER_CONTROL, pack({ is: "hello", version: PEER_VERSION, ...mine }));
    const hello = await greeting(port);
    const connection = new GPUConnection(device, port, both(mine, hello));
    const missing = options.requiredFeatures?.find((feature) => !connection.capabilities.features.includes(feature));
    if (missing === undefined) return connection;
    const who = mine.features.includes(missing) ? `the device of node ${port.peerId}` : "this device";
    const error = new GPUPeerError("capability", `${who} does not have the feature "${missing}"`);
    connection.finish(error, error);
    throw error;
  }

  private constructor(
    readonly device: GPUDevice,
    private readonly port: PeerPort,
    capabilities: GPUPeerCapabilities,
  ) {
    this.capabilities = capabilities;
    let tell: (error: GPUPeerError | undefined) => void = () => undefined;
    this.closed = new Promise((resolve) => (tell = resolve));
    this.tellClosed = tell;
    const post: Post = (words, { bytes, channel = PEER_CONTROL } = {}) => {
      if (!this.ended) port.send(channel, pack(words, bytes));
    };
    this.exports = new Exports(device, port.me, post);
    this.asks = new Asks(device, post);
    this.runner = new Runner(device, this.exports);
    port.onmessage = (_, message) => this.take(message);
    port.onclose = (reason) => this.finish(new GPUPeerError("peer-gone", `node ${port.peerId} is gone: ${reason}`));
    void device.lost.then(({ message }) => {
      const why = `the device was lost${message && `: ${message}`}`;
      this.finish(new GPUPeerError("device-lost", why), new GPUPeerError("device-lost", `at node ${port.me}: ${why}`));
    });
  }

  get peerId(): number {
    return this.port.peerId;
  }

  /** Which way bytes go now: through the pool's relay, or directly. */
  get via(): PeerPort["via"] {
    return this.port.via;
  }

  /** Lets the peer use a buffer. Give it the handle, by `postMessage` or as you like. */
  exportBuffer(buffer: GPUBuffer, options: ExportOptions = {}): GPUBufferHandle {
    this.check();
    return this.exports.add(buffer, options);
  }

  /** The owner's view of a buffer that was exported here. */
  exported(handle: GPUBufferHandle): GPUSharedBuffer {
    return this.exports.own(handle);
  }

  /** Takes a handle back: whoever uses it from now on is refused. */
  revoke(handle: GPUBufferHandle): void {
    this.exports.remove(handle);
  }

  /** A copy of a buffer of the peer, with the newest version in it if it may be read. */
  async importBuffer(handle: GPUBufferHandle): Promise<GPUSharedBuffer> {
    this.check();
    const { label, size, usage, rights } = checkHandle(handle, this.peerId);
    const { maxBufferSize } = this.device.limits;
    if (size > maxBufferSize) {
      throw new GPUPeerError("size", `the peer's buffer has ${size} bytes, but a buffer of this device holds at most ${maxBufferSize}`);
    }
    // Mapping is of no use to a copy, and excludes the rest.
    const descriptor = { label, size, usage: (usage & ~(MAP_READ | MAP_WRITE)) | COPY_SRC | COPY_DST | STORAGE };
    const buffer = await checked(this.device, "cannot make a copy", () => this.device.createBuffer(descriptor));
    const shared = new ImportedBuffer(handle, buffer, this.asks);
    this.imported.add(shared);
    try {
      if (rights.includes("read")) await shared.pull();
    } catch (error) {
      this.release(shared);
      throw error;
    }
    return shared;
  }

  /** Frees a copy. The original stays what it is. */
  release(shared: GPUSharedBuffer): void {
    if (!(shared instanceof ImportedBuffer) || !this.imported.delete(shared)) return;
    shared.end(new GPUPeerError("unknown-handle", "this copy was released"));
    shared.buffer.destroy();
  }

  /** Runs a shader on the peer's device over its buffers; needs `execute`, and `write` for those it writes. */
  async run({ code, entryPoint = "main", constants = {}, workgroups, buffers }: RemoteRun): Promise<void> {
    this.check();
    const bindings = buffers.map((one, index) => {
      const { group = 0, binding, buffer } = "token" in one ? { binding: index, buffer: one } : one;
      const { buffer: number, token } = checkHandle(buffer, this.peerId);
      return { group, binding, buffer: number, token };
    });
    const sizes = workgroups.map((size) => size ?? 1);
    const versions = await this.asks.run({ code, entryPoint, constants, workgroups: sizes, bindings });
    for (const { buffer, version } of versions) this.heard(buffer, version);
  }

  /** Says something to the peer's page: what JSON can say, up to half a megabyte. */
  postMessage(value: unknown): void {
    this.check();
    this.port.send(PEER_CONTROL, pack({ is: "say", value: value ?? null }));
  }

  /** The next thing the peer says. */
  receive(): Promise<unknown> {
    if (this.unread.length > 0) return Promise.resolve(this.unread.shift());
    if (this.ended) return Promise.reject(this.ended);
    return new Promise((take, fail) => this.receivers.push({ take, fail }));
  }

  close(): void {
    const closed = new GPUPeerError("peer-gone", "this page closed the connection");
    this.finish(closed, new GPUPeerError("peer-gone", `node ${this.port.me} closed the connection`), true);
  }

  private take(message: Uint8Array<ArrayBuffer>): void {
    try {
      const { words, bytes } = unpack(message);
      this.hear(words, bytes);
    } catch (error) {
      const { message } = asPeerError(error);
      this.finish(new GPUPeerError("protocol", `node ${this.peerId}: ${message}`), asPeerError(error));
    }
  }

  private hear(words: Words, bytes: Uint8Array<ArrayBuffer>): void {
    switch (words.is) {
      case "hello":
        // The peer's page began anew: what was before is over there.
        this.finish(new GPUPeerError("peer-gone", `node ${this.peerId} opened a new connection`));
        break;
      case "say":
        this.said(words.value);
        break;
      case "read":
      case "write":
        this.exports.hear(words);
        break;
      case "part":
        (words.toOwner ? this.exports : this.asks).part(words, bytes);
        break;
      case "took":
        (words.fromOwner ? this.exports : this.asks).took(words.id, words.bytes);
        break;
      case "same":
      case "wrote":
      case "ran":
      case "failed":
        this.asks.hear(words);
        break;
      case "run":
        void this.serve(words);
        break;
      case "version":
        this.heard(words.buffer, words.version);
        break;
      case "revoked":
        this.revoked(words.buffer);
        break;
      case "bye":
        this.finish(new GPUPeerError(words.code, words.message));
        break;
    }
  }

  private async serve(words: Words & { is: "run" }): Promise<void> {
    const { id } = words;
    const say = (answer: Words) => this.ended ?? this.port.send(PEER_CONTROL, pack(answer));
    try {
      say({ is: "ran", id, versions: await this.runner.run(words) });
    } catch (error) {
      const { code, message } = asPeerError(error, "shader");
      say({ is: "failed", id, code, message });
    }
  }

  private said(value: unknown): void {
    const receiver = this.receivers.shift();
    if (receiver) receiver.take(value);
    else if (this.unread.length < MOST_UNREAD) this.unread.push(value);
    else throw new GPUPeerError("busy", `${MOST_UNREAD} messages are waiting that this page has not received`);
  }

  private heard(buffer: number, version: number): void {
    for (const shared of this.imported) if (shared.handle.buffer === buffer) shared.heard(version);
  }

  private revoked(buffer: number): void {
    const error = new GPUPeerError("unknown-handle", `node ${this.peerId} revoked the handle of buffer ${buffer}`);
    for (const shared of this.imported) if (shared.handle.buffer === buffer) shared.end(error);
  }

  private check(): void {
    if (this.ended) throw this.ended;
  }

  /** `told`: what the peer hears of it. */
  private finish(error: GPUPeerError, told?: { code: GPUPeerErrorCode; message: string }, isWanted = false): void {
    if (this.ended) return;
    if (told) this.port.send(PEER_CONTROL, pack({ is: "bye", code: told.code, message: told.message }));
    this.ended = error;
    this.exports.close(error);
    this.asks.close(error);
    for (const shared of this.imported) shared.end(error);
    for (const { fail } of this.receivers.splice(0)) fail(error);
    this.port.close(told !== undefined);
    this.tellClosed(isWanted ? undefined : error);
  }
}

/** The peer's first words. */
async function greeting(port: PeerPort): Promise<Words & { is: "hello" }> {
  let late: ReturnType<typeof setTimeout> | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const fail = (code: GPUPeerErrorCode, why: string) => reject(new GPUPeerError(code, `node ${port.peerId} ${why}`));
      late = setTimeout(() => fail("no-answer", `did not answer within ${ANSWER_MS / 1000} s: its page must call createGPUConnection too`), ANSWER_MS);
      port.onclose = (reason) => fail("peer-gone", `is gone: ${reason}`);
      port.onmessage = (_, message) => {
        try {
          const { words } = unpack(message);
          // The end of an earlier connection may still be on its way.
          if (words.is !== "hello") return;
          if (words.version === PEER_VERSION) resolve(words);
          else fail("protocol", `speaks version ${words.version} of the protocol; this page speaks ${PEER_VERSION}`);
        } catch (error) {
          reject(asPeerError(error));
        }
      };
    });
  } catch (error) {
    port.close();
    throw error;
  } finally {
    clearTimeout(late);
    // What comes until the connection listens waits for it.
    port.onmessage = null;
  }
}
