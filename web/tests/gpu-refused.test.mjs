/** Shared GPU buffers: what is refused, and what becomes of them when a peer or a device goes. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openPair } from "./lib/gpu-pair.mjs";

let pair;
let page;

before(async () => {
  pair = await openPair();
  page = pair.page;
});

after(() => pair?.close());

test("rights are the owner's to check", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const original = fill(owner.device, Uint32Array.of(1, 2));
    const readOnly = owner.connection.exportBuffer(original);
    const writeOnly = owner.connection.exportBuffer(original, { rights: "write", label: "in" });
    const shared = await guest.connection.importBuffer(readOnly);
    const blind = await guest.connection.importBuffer(writeOnly);
    // A guest that lies to itself about its rights.
    const greedy = await guest.connection.importBuffer({ ...readOnly, rights: ["read", "write", "execute"] });
    const gone = owner.connection.exportBuffer(original);
    const late = await guest.connection.importBuffer(gone);
    owner.connection.revoke(gone);
    const code = "@group(0) @binding(0) var<storage, read_write> x: array<u32>; @compute @workgroup_size(1) fn main() { x[0] = 9; }";
    const run = (handle) => guest.connection.run({ code, workgroups: [1], buffers: [handle] });
    const refused = {
      write: await refusal(shared.push()),
      read: await refusal(blind.pull()),
      greedy: await refusal(greedy.push()),
      run: await refusal(run(readOnly)),
      token: await refusal(guest.connection.importBuffer({ ...readOnly, token: "guessed" })),
      revoked: await refusal(late.pull().then(() => late.pull())),
      other: await refusal(guest.connection.importBuffer({ ...readOnly, peer: 7 })),
      nonsense: await refusal(guest.connection.importBuffer({ type: "gpu-buffer" })),
      size: await refusal(guest.connection.importBuffer({ ...writeOnly, size: 16 }).then((wrong) => wrong.push())),
      usage: await refusal((async () => owner.connection.exportBuffer(fill(owner.device, Uint32Array.of(1), GPUBufferUsage.STORAGE)))()),
      huge: await refusal(guest.connection.importBuffer({ ...readOnly, size: 2 ** 40 })),
    };
    return { refused, values: await read(owner.device, original) };
  });
  const { refused } = found;
  assert.match(refused.write, /denied: .*no right to write; granted: read/);
  assert.match(refused.read, /denied: buffer 2 \("in"\): no right to read; granted: write/);
  assert.match(refused.greedy, /denied: buffer 1 \("numbers"\): no right to write; granted: read/);
  assert.match(refused.run, /denied: .*no right to execute/);
  assert.match(refused.token, /unknown-handle: buffer 1 is not exported here, or not with this handle/);
  assert.match(refused.revoked, /unknown-handle: .*(revoked the handle of buffer 3|not exported)/);
  assert.match(refused.other, /unknown-handle: the handle belongs to node 7, but this connection goes to node 0/);
  assert.match(refused.nonsense, /unknown-handle: this is not a handle/);
  assert.match(refused.size, /size: buffer 2 \("in"\) has 8 bytes, but the write has 16/);
  assert.match(refused.usage, /usage: .*it needs GPUBufferUsage.COPY_SRC to be read/);
  assert.match(refused.huge, /size: the peer's buffer has 1099511627776 bytes/);
  assert.deepEqual(found.values, [1, 2], "nothing that was refused was done");
});

test("a write onto an older version is refused if it says what it is based on", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const original = fill(owner.device, Uint32Array.of(1));
    const handle = owner.connection.exportBuffer(original, { rights: ["read", "write"] });
    const shared = await guest.connection.importBuffer(handle);
    await owner.connection.exported(handle).push();
    const stale = await refusal(shared.push({ onto: shared.version }));
    return { stale, wins: await shared.push() };
  });
  assert.match(found.stale, /stale: .*is at version 2, but this write is based on version 1: pull first/);
  assert.equal(found.wins, 3);
});

test("a peer that closes in the middle of a transfer is said to be gone, and nothing is torn", async () => {
  const found = await page.evaluate(async () => {
    let parts = 0;
    let cut = () => undefined;
    // Lets the guest hear three parts and no more.
    const ports = (port) => {
      const hear = Object.getOwnPropertyDescriptor(p2p.MessagePeer.prototype, "onmessage");
      Object.defineProperty(port, "onmessage", {
        get: () => hear.get.call(port),
        set: (listener) =>
          hear.set.call(port, listener && ((channel, bytes) => {
            if (bytes.byteLength > 1 << 20 && ++parts === 3) cut();
            listener(channel, bytes);
          })),
      });
      return port;
    };
    const { owner, guest } = await connect({ ports });
    const original = fill(owner.device, new Uint32Array(4 << 20).fill(1));
    const handle = owner.connection.exportBuffer(original, { rights: ["read", "write"] });
    const shared = await guest.connection.importBuffer(handle);
    owner.device.queue.writeBuffer(original, 0, new Uint32Array(4 << 20).fill(2));
    await owner.connection.exported(handle).push();
    parts = 0;
    cut = () => owner.connection.close();
    const pull = await refusal(shared.pull());
    const later = await refusal(shared.pull());
    const import_ = await refusal(guest.connection.importBuffer(handle));
    const closed = await guest.connection.closed;
    const here = await owner.connection.closed;
    const values = await read(guest.device, shared.buffer);
    return { pull, later, import_, closed: closed.message, here, whole: values.every((value) => value === 1), version: shared.version };
  });
  assert.match(found.pull, /peer-gone: node 0 closed the connection/);
  assert.match(found.later, /peer-gone: node 0 closed the connection/);
  assert.match(found.import_, /peer-gone/);
  assert.match(found.closed, /closed the connection/);
  assert.equal(found.here, undefined);
  assert.ok(found.whole, "half of a version was taken");
  assert.equal(found.version, 1);
});

test("a lost device, words that are none and destroyed buffers are said", async () => {
  const found = await page.evaluate(async () => {
    const first = await connect();
    const handle = first.owner.connection.exportBuffer(fill(first.owner.device, Uint32Array.of(1)));
    const shared = await first.guest.connection.importBuffer(handle);
    first.owner.device.destroy();
    const there = (await first.guest.connection.closed).message;
    const lost = await refusal(shared.pull());

    const { port1, port2 } = new MessageChannel();
    const device = await newDevice();
    const open = device.createGPUConnection(new p2p.MessagePeer(port1));
    const stranger = new p2p.MessagePeer(port2);
    const say = (words) => {
      const text = new TextEncoder().encode(JSON.stringify(words));
      const bytes = new Uint8Array(4 + text.length);
      new DataView(bytes.buffer).setUint32(0, text.length, true);
      bytes.set(text, 4);
      stranger.send(1, bytes);
    };
    say({ is: "hello", version: 1, features: [], limits: {} });
    const connection = await open;
    say({ is: "read", id: 1, buffer: "one", token: 4 });
    const garbled = (await connection.closed).message;

    const third = await connect();
    const buffer = fill(third.owner.device, Uint32Array.of(1));
    const dead = third.owner.connection.exportBuffer(buffer);
    buffer.destroy();
    const destroyed = await refusal(third.guest.connection.importBuffer(dead));
    const noMesh = await refusal(device.createGPUConnection(3));
    return { there, lost, garbled, destroyed, noMesh };
  });
  assert.match(found.there, /at node 0: the device was lost/);
  assert.match(found.lost, /device-lost: at node 0: the device was lost/);
  assert.match(found.garbled, /node 0: the peer sent a message that this page does not understand/);
  assert.match(found.destroyed, /usage: the buffer cannot be read: .*destroyed/is);
  assert.match(found.noMesh, /no-mesh: no pool was joined/);
});
