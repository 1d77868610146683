/** Shared GPU buffers between two devices of one page: what they do. Over a pool, as the documentation prints it:
 * gpu-p2p.test.mjs. */

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

test("what both devices can do is agreed, and what one cannot is refused", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect({ options: [{ requiredFeatures: ["subgroups"] }, {}] });
    const { port1, port2 } = new MessageChannel();
    const asking = owner.device.createGPUConnection(new p2p.MessagePeer(port1), { requiredFeatures: ["subgroups"] });
    const answering = guest.device.createGPUConnection(new p2p.MessagePeer(port2));
    const missing = await refusal(asking);
    await answering;
    return { here: owner.connection.capabilities, there: guest.connection.capabilities, missing };
  });
  assert.deepEqual(found.here, found.there);
  assert.equal(found.here.subgroups, false);
  assert.equal(found.here.float16, false);
  assert.ok(found.here.limits.maxBufferSize >= 256 << 20);
  assert.match(found.missing, /capability: the device of node 0 does not have the feature "subgroups"/);
});

test("an exported buffer is imported, pulled and pushed, and versions count", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const original = fill(owner.device, Uint32Array.of(1, 2, 3, 4));
    const handle = owner.connection.exportBuffer(original, { rights: ["read", "write"] });
    owner.connection.postMessage({ handle });
    const { handle: received } = await guest.connection.receive();
    const shared = await guest.connection.importBuffer(received);
    const own = owner.connection.exported(handle);
    const seen = { first: await read(guest.device, shared.buffer), versions: [shared.version] };

    owner.device.queue.writeBuffer(original, 0, Uint32Array.of(5, 6, 7, 8));
    const heard = new Promise((resolve) => (shared.onversion = resolve));
    await own.push();
    seen.heard = await heard;
    seen.versions.push(await shared.pull(), await shared.pull());
    seen.second = await read(guest.device, shared.buffer);
    seen.hash = shared.hash;

    guest.device.queue.writeBuffer(shared.buffer, 4, Uint32Array.of(60));
    seen.versions.push(await shared.push());
    seen.third = await read(owner.device, original);
    seen.ownVersion = own.version;
    seen.json = JSON.parse(JSON.stringify(handle)).token === handle.token;
    return seen;
  });
  assert.deepEqual(found.first, [1, 2, 3, 4]);
  assert.deepEqual(found.second, [5, 6, 7, 8]);
  assert.deepEqual(found.third, [5, 60, 7, 8]);
  assert.deepEqual(found.versions, [1, 2, 2, 3]);
  assert.deepEqual([found.heard, found.ownVersion, found.json], [2, 3, true]);
  assert.match(found.hash, /^[0-9a-f]{64}$/);
});

test("a peer device fetches what passes read and sends what they write", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const input = fill(owner.device, Uint32Array.of(1, 2, 3, 4), USAGE, "input");
    const output = fill(owner.device, new Uint32Array(4), USAGE, "output");
    const inHandle = owner.connection.exportBuffer(input);
    const outHandle = owner.connection.exportBuffer(output, { rights: ["read", "write"] });
    const own = owner.connection.exported(inHandle);
    const [a, b] = [await guest.connection.importBuffer(inHandle), await guest.connection.importBuffer(outHandle)];

    const peer = new p2p.GPUPeerDevice(guest.device);
    const code = `
      // @group(0) @binding(0) var<storage, read_write> not_this: array<u32>;
      @group(0) @binding(0) var<storage, read> a: array<u32>;
      @binding(1) @group(0) var<storage, read_write> b: array<u32>;
      @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] += a[id.x] * 10u; }`;
    const module = peer.createShaderModule({ code });
    const pipeline = peer.createComputePipeline({ layout: "auto", compute: { module } });
    const group = peer.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: a }, { binding: 1, resource: { buffer: b } }],
    });
    const step = () => {
      const encoder = peer.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(1);
      pass.end();
      return peer.submit([encoder.finish()]);
    };
    await step();
    owner.device.queue.writeBuffer(input, 0, Uint32Array.of(5, 5, 5, 5));
    await own.push();
    // Two at once are done one after the other.
    await Promise.all([step(), step()]);

    const broken = peer.createCommandEncoder();
    broken.copyBufferToBuffer(a, 0, b, 8, 16);
    const impossible = await refusal((async () => peer.submit([broken.finish()]))());
    const encoder = peer.createCommandEncoder();
    const denied = await refusal((async () => encoder.copyBufferToBuffer(b, 0, a, 0, 16))());
    return { values: await read(owner.device, output), versions: [a.version, b.version], denied, impossible };
  });
  assert.deepEqual(found.values, [110, 120, 130, 140]);
  assert.deepEqual(found.versions, [2, 4]);
  assert.match(found.impossible, /usage: these commands cannot run: /);
  assert.match(found.denied, /denied: the buffer "input": no right to write; granted: read/);
});

test("a shader runs on the owner's device if that was granted", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const original = fill(owner.device, Uint32Array.of(1, 2, 3, 4));
    const handle = owner.connection.exportBuffer(original, { rights: ["read", "write", "execute"] });
    const fixed = owner.connection.exportBuffer(fill(owner.device, Uint32Array.of(7)), { rights: "execute" });
    const shared = await guest.connection.importBuffer(handle);
    const code = `
      override factor: u32 = 2;
      @group(0) @binding(0) var<storage, read_write> x: array<u32>;
      @group(0) @binding(1) var<storage, read> y: array<u32>;
      @compute @workgroup_size(4) fn scale(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = x[id.x] * factor + y[0]; }`;
    const run = { code, entryPoint: "scale", constants: { factor: 100 }, workgroups: [1], buffers: [handle, fixed] };
    await guest.connection.run(run);
    const newest = shared.newest;
    await shared.pull();
    const broken = await refusal(guest.connection.run({ ...run, code: `${code} fn nothing( {` }));
    const noEntry = await refusal(guest.connection.run({ ...run, entryPoint: "none" }));
    // A text that looks as if it only read, and a shader that writes.
    const sly = `const zero = 0;
      @group(zero) @binding(zero) var<storage, read_write> real: array<u32>;
      @group(0) @binding(0) var<storage, read> decoy: array<u32>;
      @compute @workgroup_size(1) fn main() { real[0] = 9u; }
      @compute @workgroup_size(1) fn other() { _ = decoy[0]; }`;
    const cheat = await refusal(guest.connection.run({ code: sly, workgroups: [1], buffers: [fixed] }));
    const swapped = await refusal(guest.connection.run({ ...run, buffers: [fixed, handle] }));
    return { values: await read(guest.device, shared.buffer), newest, broken, noEntry, swapped, cheat };
  });
  assert.deepEqual(found.values, [107, 207, 307, 407]);
  assert.equal(found.newest, 2);
  assert.match(found.broken, /shader: line \d+, column \d+: /);
  assert.match(found.noEntry, /shader: .*none/);
  assert.match(found.cheat, /shader: .*(storage|Storage)/s);
  assert.match(found.swapped, /denied: buffer 2 .*no right to write/);
});

test("double buffering: every version is whole, and the last one sent is the last one there", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const size = 1 << 18;
    const original = fill(owner.device, new Uint32Array(size / 4).fill(1));
    const handle = owner.connection.exportBuffer(original, { rights: ["read", "write"] });
    const own = owner.connection.exported(handle);
    const halves = p2p.doubleBuffered(await guest.connection.importBuffer(handle), guest.device);

    const seen = [];
    for await (const half of halves.versions()) {
      const values = await read(guest.device, half.buffer);
      seen.push({ version: half.version, first: values[0], same: values.every((value) => value === values[0]) });
      if (seen.length === 4) break;
      owner.device.queue.writeBuffer(original, 0, new Uint32Array(size / 4).fill(10 * (seen.length + 1)));
      await own.push();
    }
    for (let value = 100; value < 106; value++) {
      const half = await halves.free();
      guest.device.queue.writeBuffer(half.buffer, 0, new Uint32Array(size / 4).fill(value));
      halves.send(half);
    }
    await halves.flush();
    const last = await read(owner.device, original);
    const owners = await refusal((async () => p2p.doubleBuffered(own, owner.device))());
    return { seen, last: last.every((value) => value === 105), version: own.version, owners };
  });
  assert.deepEqual(found.seen.map(({ version, first }) => [version, first]), [[1, 1], [2, 20], [3, 30], [4, 40]]);
  assert.ok(found.seen.every(({ same }) => same), "a version was torn");
  assert.ok(found.last);
  assert.equal(found.version, 10);
  assert.match(found.owners, /TypeError .*imported/);
});

test("16 MiB there and back are the same bytes, and several buffers at once do not mix", async () => {
  const found = await page.evaluate(async () => {
    const { owner, guest } = await connect();
    const values = new Uint32Array(4 << 20).map((_, i) => Math.imul(i, 2654435761));
    const same = async (device, buffer) => {
      const got = await read(device, buffer);
      return got.length === values.length && got.every((value, i) => value === values[i]);
    };
    const large = owner.connection.exportBuffer(fill(owner.device, values), { rights: ["read", "write"] });
    const small = [1, 2, 3, 4, 5, 6].map((value) => owner.connection.exportBuffer(fill(owner.device, Uint32Array.of(value))));
    const [shared, ...others] = await Promise.all([large, ...small].map((handle) => guest.connection.importBuffer(handle)));
    const there = await same(guest.device, shared.buffer);
    const few = await Promise.all(others.map(async ({ buffer }) => (await read(guest.device, buffer))[0]));
    for (let i = 0; i < values.length; i++) values[i] ^= 0xffff;
    guest.device.queue.writeBuffer(shared.buffer, 0, values);
    await shared.push();
    const back = await same(owner.device, owner.connection.exported(large).buffer);
    return { there, back, few, hashed: shared.hash !== "" };
  });
  assert.deepEqual(found, { there: true, back: true, few: [1, 2, 3, 4, 5, 6], hashed: true });
});
