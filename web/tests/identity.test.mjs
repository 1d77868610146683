/** Who a tab is, whose code it runs, and what it refuses. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { silentProgram } from "./lib/program.mjs";
import { joinTab } from "./lib/tab.mjs";

let coordinator;
let front;
let browser;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

/** Counts from the unit's place plus a number that stands in the code. */
const counting = (from) => `
  struct Params { offset: u32, length: u32 }
  @group(0) @binding(0) var<storage, read_write> output: array<u32>;
  @group(0) @binding(1) var<uniform> params: Params;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.length) { return; }
    output[id.x] = ${from}u + params.offset + id.x;
  }`;

async function until(what, look) {
  for (let tries = 0; tries < 400; tries++) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`waited in vain for ${what}`);
}

/** A profile of its own, gone with its test. */
async function profile(t) {
  const context = await browser.newContext();
  t.after(async () => {
    await context.close();
    await until("the nodes to leave", async () => (await shoal.nodes()).length === 0);
  });
  return context;
}

test("two tabs of one browser are two nodes with keys of their own, and a tab is the same node again", async (t) => {
  const context = await profile(t);
  const one = await joinTab(context, front);
  const two = await joinTab(context, front);
  await Promise.all([one.joined(), two.joined()]);
  const [first, second] = [await one.status(), await two.status()];
  assert.notEqual(first.node, second.node);
  assert.notEqual(first.identity, second.identity);
  const seen = (await shoal.nodes()).map(({ id, identity }) => [id, identity]).sort(([a], [b]) => a - b);
  const said = [first, second].map(({ node, identity }) => [node, identity]).sort(([a], [b]) => a - b);
  assert.deepEqual(seen, said);
  await one.close();
  const again = await joinTab(context, front);
  await again.joined();
  const { node, identity } = await again.status();
  assert.deepEqual([node, identity], [first.node, first.identity]);
});

test("the private key cannot be read, not even by the page", async (t) => {
  const context = await profile(t);
  const tab = await joinTab(context, front, { lend: { gpu: false } });
  await tab.joined();
  const keys = await tab.page.evaluate(
    () =>
      new Promise((resolve) => {
        const asked = indexedDB.open("shoal", 1);
        asked.onsuccess = () => {
          const all = asked.result.transaction("keys").objectStore("keys").getAll();
          all.onsuccess = async () => {
            const [{ privateKey }] = all.result;
            const read = await crypto.subtle.exportKey("pkcs8", privateKey).catch((error) => error.name);
            resolve([all.result.length, privateKey.extractable, read]);
          };
        };
      }),
  );
  assert.deepEqual(keys, [1, false, "InvalidAccessError"]);
});

test("who cannot sign with the key it names is refused with words", async (t) => {
  const context = await profile(t);
  await context.addInitScript(() => {
    const generate = crypto.subtle.generateKey.bind(crypto.subtle);
    crypto.subtle.generateKey = async (...args) => {
      const [named, used] = [await generate(...args), await generate(...args)];
      return { publicKey: named.publicKey, privateKey: used.privateKey };
    };
  });
  const tab = await joinTab(context, front, { lend: { gpu: false } });
  const reason = await tab.page.evaluate(() => globalThis.shoalTab.handle.stopped);
  assert.match(reason, /could not prove its identity/);
  assert.deepEqual(await shoal.nodes(), []);
});

test("the GPU's class is known when it is offered", async (t) => {
  const tab = await joinTab(await profile(t), front);
  await tab.joined();
  const [node] = await shoal.nodes();
  assert.ok(node.gpu);
  assert.match(node.class, /^(?!0{16})[0-9a-f]{16}$/);
});

test("what nobody else signed, the coordinator stands for, and the tab says so", async (t) => {
  const tab = await joinTab(await profile(t), front);
  await tab.joined();
  const unsigned = await connect(coordinator.url, coordinator.key, { signer: null });
  await shoal.map({ wgsl: counting(1), items: 100, name: "mine" });
  await unsigned.map({ wgsl: counting(2), items: 100, name: "nobody's" });
  const units = await tab.units();
  const signer = (name) => units.find(({ unit }) => unit.jobName === name).unit;
  assert.deepEqual([signer("mine").signer, signer("mine").signedHere], [await shoal.signer(), false]);
  assert.equal(signer("nobody's").signedHere, true);
  assert.equal(signer("nobody's").signer, (await shoal.pool()).key);
  assert.equal((await tab.status()).coordinator, (await shoal.pool()).key);
  const jobs = Object.fromEntries((await shoal.jobs()).map((job) => [job.name, job]));
  assert.deepEqual([jobs.mine.signedBy, jobs.mine.signedHere], [await shoal.signer(), false]);
  assert.equal(jobs["nobody's"].signedHere, true);
});

test("a donor who never wants a key's work does not get it, and gets it again when the donor changes mind", async (t) => {
  const mine = await shoal.signer();
  const tab = await joinTab(await profile(t), front, { lend: { rules: { only: [], never: [mine] } } });
  await tab.joined();
  const job = await shoal.submit({ kind: "map", wgsl: counting(3), inputs: [], items: 100, name: "unwanted" });
  // Somebody else's goes by it.
  const other = await connect(coordinator.url, coordinator.key, { signer: null });
  await other.map({ wgsl: counting(4), items: 100, name: "welcome" });
  const names = async () => [...new Set((await tab.units()).map(({ unit }) => unit.jobName))];
  assert.deepEqual(await names(), ["welcome"]);
  assert.equal((await shoal.job(job.id)).itemsDone, 0);
  await tab.page.evaluate(() => globalThis.shoalTab.handle.setRules({ only: [], never: [] }));
  await shoal.wait(job.id);
  assert.deepEqual(await names(), ["welcome", "unwanted"]);
  // Only others now.
  const key = (await shoal.pool()).key;
  await tab.page.evaluate((key) => globalThis.shoalTab.handle.setRules({ only: [key], never: [] }), key);
  const again = await shoal.submit({ kind: "map", wgsl: counting(5), inputs: [], items: 100, name: "left out" });
  await other.map({ wgsl: counting(6), items: 100, name: "named" });
  assert.deepEqual(await names(), ["welcome", "unwanted", "named"]);
  await shoal.cancel(again.id);
});

test("a kernel of which one byte was changed on the way is refused by the tab", async (t) => {
  const context = await profile(t);
  const evil = await startFront(coordinator, {
    frames: (bytes) => Buffer.from(bytes.toString("latin1").replace("77777u", "77778u"), "latin1"),
  });
  t.after(() => evil.close());
  const tab = await joinTab(context, evil);
  await tab.joined();
  const options = { wgsl: counting(77_777), items: 100, name: "changed" };
  await assert.rejects(shoal.map(options), /the code was refused: it is not what the key [0-9a-f]{64} signed/);
  assert.deepEqual(await tab.units(), []);
  const [[refused, message]] = await tab.page.evaluate(() => globalThis.shoalTab.seen.refused);
  assert.equal(refused.jobName, "changed");
  assert.match(message, /is not what the key/);
  await tab.close();
  // The same job through an honest front.
  const honest = await joinTab(context, front);
  await honest.joined();
  assert.equal((await shoal.map(options))[1], 77_778);
});

test("a program of which one byte was changed on the way is refused by the tab", async (t) => {
  const context = await profile(t);
  const module = silentProgram("an honest program");
  const { hash } = await shoal.upload(module);
  const evil = await startFront(coordinator, {
    blob: (name, bytes) => {
      if (name === hash) bytes[bytes.length - 1] ^= 1;
      return bytes;
    },
  });
  t.after(() => evil.close());
  const tab = await joinTab(context, evil, { lend: { gpu: false } });
  await tab.joined();
  const job = await shoal.submit({ kind: "exec", module: hash, files: [{ name: "one", blob: hash }], name: "changed" });
  const failed = await until("the tab to refuse", async () => (await tab.units()).find(({ type }) => type === "failed"));
  assert.match(failed.message, new RegExp(`blob ${hash}: other bytes came`));
  assert.ok((await tab.units()).every(({ type }) => type !== "finished"));
  await shoal.cancel(job.id).catch(() => undefined);
});

test("a page knows which node its own browser is", async (t) => {
  const context = await profile(t);
  const homeOf = async () => {
    const page = await openPage(context, `${front.url}/join`);
    const home = await page.evaluate(
      async ({ url, key }) => {
        const { connect } = await import(`${url}/assets/sdk.js`);
        return (await (await connect(url, key)).home()) ?? null;
      },
      { url: front.url, key: front.key },
    );
    await page.close();
    return home;
  };
  assert.equal(await homeOf(), null);
  const other = await joinTab(await browser.newContext(), front, { lend: { gpu: false } });
  const tab = await joinTab(context, front, { lend: { gpu: false } });
  await Promise.all([other.joined(), tab.joined()]);
  assert.equal(await homeOf(), (await tab.status()).node);
  await other.close();
});

test("pages sign with one key for all tabs of the browser", async (t) => {
  const context = await profile(t);
  const signer = async () => {
    const page = await openPage(context, `${front.url}/join`);
    return page.evaluate(
      async ({ url, key }) => {
        const { connect } = await import(`${url}/assets/sdk.js`);
        return (await connect(url, key)).signer();
      },
      { url: front.url, key: front.key },
    );
  };
  const [one, two] = await Promise.all([signer(), signer()]);
  assert.match(one, /^[0-9a-f]{64}$/);
  assert.equal(one, two);
});
