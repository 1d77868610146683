/** What the donor and the device decide: how much is lent, pauses, and what is shown. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { send, startPool } from "./lib/pool.mjs";
import { joinTab } from "./lib/tab.mjs";

let coordinator;
let front;
let browser;
let shoal;
let tab;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  tab = await joinTab(browser, front, { lend: { cpu: 1, name: "my phone" } });
  await tab.joined();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

/** The node as the coordinator sees it, once it is as wanted. */
async function nodeOnce(wanted) {
  const [node] = await nodesOnce(([node]) => node && wanted(node));
  return node;
}

async function nodesOnce(wanted) {
  for (let tries = 0; tries < 200; tries++) {
    const nodes = await shoal.nodes();
    if (wanted(nodes)) return nodes;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`the nodes did not become ${wanted}`);
}

function sharesOf(job) {
  return job.shares.map(({ node, items }) => [node, items]);
}

test("the donor's changes reach the coordinator", async () => {
  const cores = (await tab.status()).device.cores;
  await nodeOnce((node) => node.cpuSlots === cores && node.gpu !== null && node.name === "my phone");
  await tab.set({ gpu: false });
  await nodeOnce((node) => node.gpu === null);
  await tab.set({ gpu: true, cpu: 0 });
  await nodeOnce((node) => node.gpu !== null && node.cpuSlots === 0);
  await tab.set({ cpu: 1 });
  await nodeOnce((node) => node.cpuSlots === cores);
});

test("a pause takes no units, and going on does", async () => {
  await tab.page.evaluate(() => globalThis.shoalTab.handle.pause());
  await nodeOnce((node) => node.paused);
  assert.deepEqual([(await tab.status()).state, (await tab.status()).reason], ["paused", "paused by you"]);
  const { node } = await tab.status();
  const job = await shoal.submit({ kind: "noop", items: 10 });
  // All of it waited for one who takes units.
  const other = await joinTab(browser, front);
  await other.joined();
  const done = await shoal.wait(job.id);
  assert.deepEqual(sharesOf(done), [[(await other.status()).node, 10]]);
  await other.close();
  await nodesOnce((nodes) => nodes.length === 1);
  await tab.page.evaluate(() => globalThis.shoalTab.handle.resume());
  const next = await shoal.submit({ kind: "noop", items: 10 });
  assert.deepEqual(sharesOf(await shoal.wait(next.id)), [[node, 10]]);
});

test("out of sight half is lent, or nothing if the donor wants so", async () => {
  const hide = (hidden) =>
    tab.page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  const cores = (await tab.status()).device.cores;
  await hide(true);
  await nodeOnce((node) => node.cpuSlots === Math.max(1, Math.round(cores / 2)) && !node.paused);
  await tab.set({ whenHidden: "pause" });
  await nodeOnce((node) => node.paused);
  await hide(false);
  await nodeOnce((node) => !node.paused && node.cpuSlots === cores);
  await tab.set({ whenHidden: "slow" });
});

test("on battery the device rests if the donor wants so", async () => {
  const other = await browser.newPage();
  await other.goto(`${front.url}/join`);
  const reasons = await other.evaluate(
    async ({ url, token }) => {
      const battery = Object.assign(new EventTarget(), { charging: false });
      navigator.getBattery = () => Promise.resolve(battery);
      const { join } = await import(`${url}/assets/sdk.js`);
      const handle = await join({ url, token, onlyPluggedIn: true });
      const once = async (state) => {
        while (handle.status.state !== state) await new Promise((resolve) => setTimeout(resolve, 20));
        return handle.status.reason ?? null;
      };
      const resting = await once("paused");
      battery.charging = true;
      battery.dispatchEvent(new Event("chargingchange"));
      const lending = await once("joined");
      handle.stop();
      return [resting, lending];
    },
    { url: front.url, token: front.token },
  );
  assert.deepEqual(reasons, ["on battery", null]);
  await other.close();
});

test("a node whose code does not come, or is none, ends with the reason", async (t) => {
  const join = async (onWasm) => {
    const site = await startPool({ routes: { "GET /assets/brain_bg.wasm": onWasm } });
    t.after(() => site.close());
    const page = await browser.newPage();
    t.after(() => page.close());
    await page.clock.install();
    await page.goto(`${site.url}/blank`);
    await page.evaluate(
      async ({ url, token }) => {
        const { join } = await import("/assets/sdk.js");
        globalThis.handle = await join({ url, token, assets: "/assets", gpu: false });
      },
      { url: front.url, token: front.token },
    );
    return page;
  };
  const reason = (page) => page.evaluate(() => globalThis.handle.stopped);
  const silent = await join(() => undefined);
  assert.equal(await silent.evaluate(() => globalThis.handle.status.state), "starting");
  await silent.clock.fastForward(15_000);
  assert.match(await reason(silent), /did not start in 15 s/);
  assert.match(await reason(await join((_, response) => send(response, 404, "text/plain", "no"))), /answered 404/);
  const other = await join((_, response) => send(response, 200, "application/wasm", "not wasm"));
  assert.match(await reason(other), /could not start/);
});

test("a page put to sleep hands its units back first", async () => {
  const happens = (name) => tab.page.evaluate((name) => document.dispatchEvent(new Event(name)), name);
  await happens("freeze");
  await nodeOnce((node) => node.paused);
  await happens("resume");
  await nodeOnce((node) => !node.paused);
});

test("the donor sees what runs and for whom", async () => {
  const wgsl = `
    @group(0) @binding(0) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      if (id.x >= arrayLength(&output)) { return; }
      output[id.x] = id.x;
    }`;
  await shoal.map({ wgsl, items: 5000, name: "count", owner: "Ada" });
  const units = (await tab.units()).filter(({ unit }) => unit.jobName === "count");
  assert.ok(units.length >= 2);
  assert.deepEqual([...new Set(units.map(({ unit }) => `${unit.owner} ${unit.kind} ${unit.lane}`))], ["Ada map gpu"]);
  assert.deepEqual([...new Set(units.map(({ type }) => type))], ["started", "finished"]);
});
