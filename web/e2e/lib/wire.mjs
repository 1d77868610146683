// The words between a node and its coordinator (postcard), as far as a node made by a test needs them.

import { text, varint } from "../../tests/lib/postcard.mjs";

const HELLO = 0;
const DONE = 1;
const ALIVE = 3;
const TO_NODE = ["Welcome", "Refused", "Job", "Lend", "Revoke", "Forget", "Challenge"];
const VERSION = 6;

export function hello({ token, identity, proof, caps }) {
  return Buffer.from([HELLO, ...varint(VERSION), ...text(token), ...identity, ...proof, ...encodeCaps(caps), 0]);
}

/** `units`: `{attempt, took, bytes}` with the answer, or `{attempt, took, hash, size}` of one that is stored. */
export function done(units) {
  const unit = ({ attempt, took, bytes, hash, size }) => {
    const output = bytes ? [0, ...varint(bytes.length), ...bytes] : [1, ...Buffer.from(hash, "hex"), ...varint(size)];
    return [...varint(attempt), ...varint(took), ...output];
  };
  return Buffer.from([DONE, ...list(units, unit)]);
}

export function alive(running, queued) {
  return Buffer.from([ALIVE, ...list(running, varint), ...list(queued, varint)]);
}

function encodeCaps({ name, cpuSlots, gpu, speed = 100, class: numericClass = 0n }) {
  const kinds = { native: 0, browser: 1 };
  const offered = gpu
    ? [1, ...text("a GPU"), ...text("none"), 1, 0, ...[128 << 20, 256, 16 << 10, 8, gpu.slots].flatMap(varint)]
    : [0];
  // Memory enough, a thread for each slot, no engines beyond those of the lanes.
  const means = [...varint(2 ** 32), ...varint(cpuSlots), 0];
  return [kinds.native, ...text(name), ...varint(cpuSlots), ...offered, ...means, ...varint(speed), ...varint(numericClass)];
}

/** What the coordinator said, as `{type, …}`. */
export function heard(bytes) {
  const read = new Reader(bytes);
  const type = TO_NODE[read.varint()];
  switch (type) {
    case "Welcome":
      return { type, node: read.varint(), session: read.text() };
    case "Refused":
      return { type, why: read.varint() };
    case "Job": {
      const [job, name, owner, items] = [read.varint(), read.text(), read.text(), read.varint()];
      return { type, job, name, owner, items, kind: read.text() };
    }
    case "Lend":
      return { type, leases: read.list(() => ({ attempt: read.varint(), job: read.varint(), start: read.varint(), len: read.varint() })) };
    case "Revoke":
      return { type, attempts: read.list(() => read.varint()) };
    case "Forget":
      return { type, job: read.varint() };
    case "Challenge":
      return { type, nonce: read.take(32), coordinator: read.take(32) };
    default:
      return { type: "unknown" };
  }
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const [byte] = this.take(1);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(value);
    }
  }

  text() {
    return this.take(this.varint()).toString("utf8");
  }

  list(item) {
    return Array.from({ length: this.varint() }, item);
  }
}

function list(items, encode) {
  return [...varint(items.length), ...items.flatMap((item) => encode(item))];
}
