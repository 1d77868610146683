/** How much of others a page that talks has to bear: peers at a time, and bytes it has not taken. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

let coordinator;
let front;
let browser;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

test("four at a time are met, not four in a page's life", async () => {
  const context = await browser.newContext();
  const page = await openPage(context, `${front.url}/assets/gpu-p2p.js`);
  const met = await page.evaluate(
    async ({ url, token }) => {
      const { connectMesh } = await import(`${url}/assets/gpu-p2p.js`);
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const join = (name) => connectMesh({ url, token, name });
      const others = [];
      for (const name of ["a", "b", "c", "d", "e", "f"]) {
        const mesh = await join(name);
        mesh.onpeer = async (peer) => device.createGPUConnection(await mesh.meet(peer));
        others.push(mesh);
      }
      const mesh = await join("whoever talks to all");
      let met = 0;
      // The first one again at the end: its crew is another one then.
      for (const { id } of [...others, others[0]]) {
        const connection = await device.createGPUConnection(id);
        met += 1;
        connection.close();
      }
      return met;
    },
    { url: front.url, token: front.token },
  );
  assert.equal(met, 7);
  await context.close();
});

test("a page that takes nothing is sent no more than it may hold, and all of it once it does", async () => {
  const context = await browser.newContext();
  const page = await openPage(context, `${front.url}/assets/gpu-p2p.js`);
  await page.evaluate(
    async ({ url, token }) => {
      const { connectMesh } = await import(`${url}/assets/gpu-p2p.js`);
      globalThis.came = 0;
      globalThis.Worker = class extends Worker {
        constructor(...args) {
          super(...args);
          this.addEventListener("message", ({ data }) => data.type === "heard" && (came += 1));
        }
      };
      const join = (name) => connectMesh({ url, token, name });
      const [from, to] = [await join("who says"), await join("who does not listen")];
      const called = new Promise((resolve) => (to.onpeer = (peer) => resolve(to.meet(peer))));
      const port = await from.meet(to.id);
      globalThis.deaf = await called;
      for (let n = 0; n < 24; n++) port.send(2, new Uint8Array(1 << 20).fill(n));
    },
    { url: front.url, token: front.token },
  );
  // More than it may hold, and then no more.
  let came = -1;
  for (let before = -2; came < 8 || came !== before; ) {
    before = came;
    await new Promise((resolve) => setTimeout(resolve, 500));
    came = await page.evaluate(() => globalThis.came);
  }
  assert.ok(came <= 8 + 4 + 1, `${came} MiB came: more than the page may leave untaken and a link's window`);
  const all = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const found = [];
        deaf.onmessage = (_, bytes) => found.push(bytes[0]) === 24 && resolve(found);
      }),
  );
  assert.deepEqual(all, [...Array(24).keys()]);
  await context.close();
});
