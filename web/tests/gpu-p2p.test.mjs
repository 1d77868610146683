/** Shared GPU buffers between two tabs over a real pool: the pages and the lines of docs/gpu-p2p.md, exactly as printed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { blocks, DOCS, startDocsSite } from "./lib/docs-site.mjs";
import { startFront } from "./lib/front.mjs";

let coordinator;
let front;
let site;
let browser;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  site = await startDocsSite(front);
});

after(async () => {
  await browser?.close();
  await site?.close();
  await front?.close();
  await coordinator?.close();
});

/** Two tabs with a connection to each other, as `globalThis.connection`. */
async function connectTabs() {
  const context = await browser.newContext();
  const pages = await Promise.all([0, 1].map(() => openPage(context, `${site.url}/blank.html`)));
  const ids = await Promise.all(
    pages.map((page) =>
      page.evaluate(
        async ({ url, token }) => {
          const p2p = await import(`${url}/assets/gpu-p2p.js`);
          let counting = () => undefined;
          const whenParts = (left, act) => (counting = () => --left === 0 && act());
          const isPart = ({ type, bytes }) => type === "heard" && bytes.byteLength > 1 << 20;
          globalThis.Worker = class extends Worker {
            constructor(...args) {
              super(...args);
              this.addEventListener("message", ({ data }) => isPart(data) && counting());
            }
          };
          const mesh = await p2p.connectMesh({ url, token, name: "a tab that talks" });
          const device = await (await navigator.gpu.requestAdapter()).requestDevice();
          const refusal = (promise) =>
            Promise.resolve(promise).then(
              () => "nothing was refused",
              (error) => `${error.name} ${error.code}: ${error.message}`,
            );
          Object.assign(globalThis, { p2p, mesh, device, refusal, whenParts });
          mesh.onpeer = async (peer) => (globalThis.called = device.createGPUConnection(peer));
          return mesh.id;
        },
        { url: front.url, token: front.token },
      ),
    ),
  );
  await pages[1].evaluate(async (id) => (globalThis.connection = await device.createGPUConnection(id)) && undefined, ids[0]);
  await pages[0].evaluate(async () => (globalThis.connection = await called) && undefined);
  return { pages, ids, close: () => context.close() };
}

/** Asks until the answer is true. */
async function until(ask, seconds = 20) {
  for (const end = Date.now() + seconds * 1000; !(await ask()); ) {
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Page one exports so many f32 and gives the handle to page two. */
async function share([one, two], { length, rights }) {
  await one.evaluate(
    ({ length, rights }) => {
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      globalThis.original = device.createBuffer({ label: "numbers", size: 4 * length, usage });
      device.queue.writeBuffer(original, 0, Float32Array.from({ length }, (_, i) => i));
      globalThis.handle = connection.exportBuffer(original, { rights });
      connection.postMessage(handle);
    },
    { length, rights },
  );
  await two.evaluate(async () => {
    globalThis.handle = await connection.receive();
    globalThis.shared = await connection.importBuffer(handle);
  });
}

/** What a page's buffer holds, as f32. */
function values(page, name) {
  return page.evaluate(async (name) => {
    const buffer = name === "original" ? original : shared.buffer;
    const copy = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
    device.queue.submit([encoder.finish()]);
    await copy.mapAsync(GPUMapMode.READ);
    return [...new Float32Array(copy.getMappedRange())];
  }, name);
}

test("the two pages of the documentation run as printed", async () => {
  assert.equal(blocks("html").length, 2);
  const context = await browser.newContext();
  const one = await openPage(context, `${site.url}/one.html`);
  const link = await one.locator("a").getAttribute("href");
  const two = await openPage(context, `${site.url}/${link}`);
  await two.getByText(/^Wrote version 2 to node \d+$/).waitFor();
  await one.getByText(/^Version 2: /).waitFor();
  const shown = await one.locator("#out").textContent();
  assert.ok(DOCS.includes(`\`${shown}\``), `the documentation does not print what page one shows: ${shown}`);
  assert.equal(shown, "Version 2: 0, 1, 4, 9");
  await context.close();
});

test("the lines of the documentation run as printed, one after the other", async () => {
  const tabs = await connectTabs();
  const [one, two] = tabs.pages;
  await share(tabs.pages, { length: 1024, rights: ["read", "write", "execute"] });
  const lines = blocks("js").filter((block) => !block.startsWith("import "));
  assert.equal(lines.length, 4);
  // After each: the owner's version, and what its first numbers are.
  const expected = [
    [3, [1, 2, 3, 3]],
    [4, [0, 1, 2, 3]],
    [5, [1, 2, 3, 4]],
    [8, [2, 2, 3, 4]],
  ];
  for (const [index, block] of lines.entries()) {
    await two.evaluate(async (block) => {
      const names = { connection, device, handle, shared, ...p2p };
      const run = new Function(...Object.keys(names), `return (async () => {${block}})();`);
      await run(...Object.values(names));
    }, block);
    const [version, first] = expected[index];
    assert.equal(await one.evaluate(() => connection.exported(handle).version), version, `after block ${index + 1}`);
    // The second half of a double buffer holds nothing before it is written.
    const found = (await values(one, "original")).slice(0, index === 3 ? 1 : 4);
    assert.deepEqual(found, first.slice(0, found.length), `after block ${index + 1}`);
  }
  await tabs.close();
});

test("rights are checked across tabs, and strangers are not met", async () => {
  const tabs = await connectTabs();
  const [one, two] = tabs.pages;
  await share(tabs.pages, { length: 4, rights: "read" });
  const found = await two.evaluate(async () => {
    const greedy = await connection.importBuffer({ ...handle, rights: ["read", "write"] });
    return {
      write: await refusal(shared.push()),
      greedy: await refusal(greedy.push()),
      nobody: await refusal(device.createGPUConnection(99_999)),
      itself: await refusal(device.createGPUConnection(mesh.id)),
      twice: await refusal(device.createGPUConnection(connection.peerId)),
    };
  });
  assert.match(found.write, /denied: buffer 1 \("numbers"\): no right to write; granted: read/);
  assert.match(found.greedy, /denied: buffer 1 \("numbers"\): no right to write; granted: read/);
  assert.match(found.nobody, /not-met: cannot connect to node 99999/);
  assert.match(found.itself, /not-met: node \d+ is this page itself/);
  assert.match(found.twice, /busy: this page is already connected to node \d+/);
  assert.deepEqual(await values(one, "original"), [0, 1, 2, 3]);
  await tabs.close();
});

test("16 MiB travel there and back", async () => {
  const tabs = await connectTabs();
  const [one, two] = tabs.pages;
  await share(tabs.pages, { length: 4 << 20, rights: ["read", "write", "execute"] });
  const found = await two.evaluate(async () => {
    const first = shared.hash;
    await shared.push();
    await connection.run({
      code: "@group(0) @binding(0) var<storage, read_write> x: array<u32>; @compute @workgroup_size(1) fn main() { x[7] ^= 1u; }",
      workgroups: [1],
      buffers: [handle],
    });
    const wait = shared.version;
    await shared.pull();
    return { first, second: shared.hash, versions: [wait, shared.version], via: connection.via };
  });
  assert.match(found.first, /^[0-9a-f]{64}$/);
  assert.notEqual(found.first, found.second);
  assert.deepEqual(found.versions, [2, 3]);
  const same = await one.evaluate(() => connection.exported(handle).hash);
  assert.equal(same, found.second, "both ends name the same bytes");
  await tabs.close();
});

test("a page that closes in the middle of a transfer is said to be gone, and a connection can be made again", async () => {
  const tabs = await connectTabs();
  const [one, two] = tabs.pages;
  await share(tabs.pages, { length: 4 << 20, rights: "read" });
  await one.evaluate(() => {
    new BroadcastChannel("enough").onmessage = () => connection.close();
    void connection.exported(handle).push();
  });
  const pulled = await two.evaluate(async () => {
    await shared.newer();
    // Two parts of sixteen came: the owner is to close.
    whenParts(2, () => new BroadcastChannel("enough").postMessage(""));
    const refused = await refusal(shared.pull());
    return { refused, version: shared.version };
  });
  assert.match(pulled.refused, /peer-gone: node \d+ closed the connection/);
  assert.equal(pulled.version, 1, "half of a version was taken");

  const again = await two.evaluate(async (id) => {
    globalThis.connection = await device.createGPUConnection(id);
    return connection.capabilities.features.length;
  }, tabs.ids[0]);
  assert.ok(again > 0);
  await one.evaluate(async () => (globalThis.connection = await called) && undefined);
  await share(tabs.pages, { length: 4, rights: "read" });
  assert.deepEqual(await values(two, "shared"), [0, 1, 2, 3]);

  const closed = two.evaluate(async () => (await connection.closed).message);
  await one.close();
  assert.match(await closed, /node \d+ is gone: it left the pool/);
  await tabs.close();
});

test("a coordinator that starts anew ends connections, and lets them be made again", async () => {
  const tabs = await connectTabs();
  const [one, two] = tabs.pages;
  await share(tabs.pages, { length: 4, rights: "read" });
  const closed = tabs.pages.map((page) => page.evaluate(async () => (await connection.closed).code));
  coordinator = await coordinator.restart();
  assert.deepEqual(await Promise.all(closed), ["peer-gone", "peer-gone"]);
  // The other page may take a moment longer to come back, and have another number then.
  await until(async () =>
    two.evaluate(
      (id) =>
        device.createGPUConnection(id).then(
          (made) => (globalThis.connection = made) !== undefined,
          (error) => {
            if (error.code !== "not-met") throw error;
            return false;
          },
        ),
      await one.evaluate(() => mesh.id),
    ),
  );
  await one.evaluate(async () => (globalThis.connection = await called) && undefined);
  await share(tabs.pages, { length: 4, rights: "read" });
  assert.deepEqual(await values(two, "shared"), [0, 1, 2, 3]);
  await tabs.close();
});
