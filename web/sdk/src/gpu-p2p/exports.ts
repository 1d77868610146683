/** The owner's side: what a peer was granted, and what it does with it. Every operation is checked here. */

import { asPeerError, GPUPeerError } from "./error.js";
import { type ExportOptions, freshToken, type GPUBufferHandle, type GPUBufferRight, rightsOf } from "./handle.js";
import { OwnBuffer } from "./shared.js";
import { Source } from "./source.js";
import { Landing, Sending, snapshot } from "./transfer.js";
import { COPY_DST, COPY_SRC, STORAGE } from "./usage.js";
import { type Claim, dataChannel, type Words } from "./words.js";

/** Buffers exported on one connection: more are a leak. */
const MOST_EXPORTS = 4_096;
/** Operations of one peer at a time: each may need a copy of a buffer. */
const MOST_SERVED = 8;
/** Parts that may come before there is room for them: what a peer sends unasked, twice. */
const MOST_EARLY = 16;

export interface Grant {
  number: number;
  token: string;
  rights: readonly GPUBufferRight[];
  label: string;
  source: Source;
  /** This page's view of it, once it was asked for. */
  own: OwnBuffer | undefined;
  unwatch: () => void;
}

export type Post = (words: Words, options?: { bytes?: Uint8Array; channel?: number }) => void;

interface Writing {
  landing: Landing | undefined;
  /** Parts that came before there was room for them. */
  early: { part: Words & { is: "part" }; bytes: Uint8Array }[];
  grant: Grant;
  onto: number;
}

export class Exports {
  private readonly grants = new Map<number, Grant>();
  private readonly reading = new Map<number, Sending>();
  private readonly writing = new Map<number, Writing>();
  private count = 0;

  constructor(
    private readonly device: GPUDevice,
    private readonly me: number,
    private readonly post: Post,
  ) {}

  add(buffer: GPUBuffer, options: ExportOptions): GPUBufferHandle {
    const rights = rightsOf(options);
    checkUsage(buffer, rights);
    if (this.grants.size >= MOST_EXPORTS) {
      throw new GPUPeerError("busy", `this page already exports ${MOST_EXPORTS} buffers: revoke some first`);
    }
    const source = Source.of(buffer);
    const number = ++this.count;
    const unwatch = source.watch((version) => this.post({ is: "version", buffer: number, version }));
    const label = options.label ?? buffer.label;
    const grant: Grant = { number, token: freshToken(), rights, label, source, own: undefined, unwatch };
    this.grants.set(number, grant);
    const { size, usage } = buffer;
    const { token } = grant;
    return { type: "gpu-buffer", peer: this.me, buffer: number, label, size, usage, version: source.version, rights, token };
  }

  /** What was granted with a handle; says so if it was not. */
  find(claim: Claim, ...needed: GPUBufferRight[]): Grant {
    const grant = this.grants.get(claim.buffer);
    if (!grant || grant.token !== claim.token) {
      throw new GPUPeerError("unknown-handle", `buffer ${claim.buffer} is not exported here, or not with this handle`);
    }
    const missing = needed.find((right) => !grant.rights.includes(right));
    if (missing === undefined) return grant;
    const granted = grant.rights.join(", ") || "nothing";
    throw new GPUPeerError("denied", `${named(grant)}: no right to ${missing}; granted: ${granted}`);
  }

  own(claim: Claim): OwnBuffer {
    const grant = this.find(claim);
    grant.own ??= new OwnBuffer(grant.source, grant.label, grant.rights);
    return grant.own;
  }

  remove(claim: Claim): void {
    const grant = this.find(claim);
    forget(grant);
    this.grants.delete(grant.number);
    this.post({ is: "revoked", buffer: grant.number });
  }

  /** The peer asks. */
  hear(words: Words & { is: "read" | "write" }): void {
    if (this.reading.size + this.writing.size >= MOST_SERVED) {
      const message = `this connection already has ${MOST_SERVED} transfers in progress`;
      this.refuse(words.id, new GPUPeerError("busy", message));
    } else if (words.is === "read") {
      void this.read(words).catch((error: unknown) => this.refuse(words.id, error));
    } else {
      void this.write(words).catch((error: unknown) => this.refuse(words.id, error));
    }
  }

  took(id: number, bytes: number): void {
    this.reading.get(id)?.took(bytes);
  }

  /** Of a write; parts of one that was refused are not waited for any more. */
  part(part: Words & { is: "part" }, bytes: Uint8Array): void {
    const writing = this.writing.get(part.id);
    if (!writing) return;
    if (writing.landing) void this.land(writing.landing, writing, part, bytes).catch((error: unknown) => this.refuse(part.id, error));
    else if (writing.early.length < MOST_EARLY) writing.early.push({ part, bytes });
    else this.refuse(part.id, new GPUPeerError("busy", "more data was sent than this page can take"));
  }

  close(error: GPUPeerError): void {
    for (const grant of this.grants.values()) forget(grant);
    for (const sending of this.reading.values()) sending.fail(error);
    for (const { landing } of this.writing.values()) landing?.free();
    for (const table of [this.grants, this.reading, this.writing]) table.clear();
  }

  private async read({ id, have, ...claim }: Words & { is: "read" }): Promise<void> {
    const { source, number } = this.find(claim, "read");
    if (source.version === have) {
      this.post({ is: "same", id, version: have, hash: source.hash ?? "" });
      return;
    }
    let { version, hash } = source;
    const sending = new Sending((part, bytes) => {
      this.post({ is: "part", id, toOwner: false, version, ...part }, { bytes, channel: dataChannel(number) });
    });
    this.reading.set(id, sending);
    try {
      const copy = await snapshot(this.device, source.buffer, () => ({ version, hash } = source));
      try {
        const found = await sending.run(copy.bytes, hash);
        if (source.version === version) source.hash = found;
      } finally {
        copy.free();
      }
    } finally {
      this.reading.delete(id);
    }
  }

  private async write({ id, size, onto, ...claim }: Words & { is: "write" }): Promise<void> {
    const grant = this.find(claim, "write");
    const { buffer } = grant.source;
    if (size !== buffer.size) {
      throw new GPUPeerError("size", `${named(grant)} has ${buffer.size} bytes, but the write has ${size}`);
    }
    checkBase(grant, onto);
    const writing: Writing = { landing: undefined, early: [], grant, onto };
    this.writing.set(id, writing);
    const landing = await Landing.open(this.device, size);
    if (this.writing.get(id) !== writing) return landing.free();
    writing.landing = landing;
    for (const { part, bytes } of writing.early.splice(0)) await this.land(landing, writing, part, bytes);
  }

  private async land(landing: Landing, { grant, onto }: Writing, part: Words & { is: "part" }, bytes: Uint8Array): Promise<void> {
    const { id } = part;
    const isWhole = landing.take(part, bytes);
    this.post({ is: "took", id, fromOwner: false, bytes: bytes.byteLength });
    if (!isWhole) return;
    checkBase(grant, onto);
    this.writing.delete(id);
    let version = 0;
    await landing.commit(grant.source.buffer, () => (version = grant.source.changed(part.hash || undefined)));
    this.post({ is: "wrote", id, version });
  }

  private refuse(id: number, error: unknown): void {
    this.writing.get(id)?.landing?.free();
    this.writing.delete(id);
    const { code, message } = asPeerError(error);
    this.post({ is: "failed", id, code, message });
  }
}

export function named({ number, label }: Grant): string {
  return label === "" ? `buffer ${number}` : `buffer ${number} ("${label}")`;
}

function forget({ unwatch, own }: Grant): void {
  unwatch();
  own?.stop();
}

function checkBase(grant: Grant, onto: number): void {
  const { version } = grant.source;
  if (onto < 0 || onto === version) return;
  throw new GPUPeerError("stale", `${named(grant)} is at version ${version}, but this write is based on version ${onto}: pull first`);
}

function checkUsage({ label, size, usage, mapState }: GPUBuffer, rights: readonly GPUBufferRight[]): void {
  const wrong = (what: string) => new GPUPeerError("usage", `the buffer${label && ` "${label}"`} cannot be exported: ${what}`);
  if (mapState !== "unmapped") throw wrong("it is mapped");
  if (size === 0 || size % 4 !== 0) throw wrong(`its ${size} bytes are not a multiple of 4`);
  if (rights.includes("read") && !(usage & COPY_SRC)) throw wrong("it needs GPUBufferUsage.COPY_SRC to be read");
  if (rights.includes("write") && !(usage & COPY_DST)) throw wrong("it needs GPUBufferUsage.COPY_DST to be written");
  if (rights.includes("execute") && !(usage & STORAGE)) throw wrong("it needs GPUBufferUsage.STORAGE for shaders");
}
