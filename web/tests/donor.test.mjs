/** What the donor and the device decide: how much is lent, pauses, and what is shown. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { launchPlain } from "./lib/plain.mjs";
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
  await tab.set({ memory: 2 ** 29 });
  await nodeOnce((node) => node.memory === 2 ** 29);
  assert.equal((await tab.status()).lent.memory, 2 ** 29);
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

const hide = (hidden) =>
  tab.page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);

test("out of sight nothing is lent, or half, or all, as the donor wants; the coordinator knows", async () => {
  const cores = (await tab.status()).device.cores;
  await hide(true);
  await nodeOnce((node) => node.paused && !node.condition.visible);
  assert.match((await tab.status()).reason, /in the background/);
  await tab.set({ whenHidden: "slow" });
  await nodeOnce((node) => node.cpuSlots === Math.max(1, Math.round(cores / 2)) && !node.paused);
  await tab.set({ whenHidden: "go on" });
  await nodeOnce((node) => node.cpuSlots === cores && !node.paused && !node.condition.visible);
  await hide(false);
  await nodeOnce((node) => node.condition.visible);
  await tab.set({ whenHidden: "pause" });
});

test("a device that is put away rests before the next unit comes", async () => {
  const { node } = await tab.status();
  await hide(true);
  // The very next thing the coordinator does already counts with it.
  await nodeOnce((node) => node.paused);
  const job = await shoal.submit({ kind: "noop", items: 10 });
  const other = await joinTab(browser, front);
  await other.joined();
  assert.deepEqual(sharesOf(await shoal.wait(job.id)), [[(await other.status()).node, 10]]);
  await other.close();
  await nodesOnce((nodes) => nodes.length === 1);
  await hide(false);
  const next = await shoal.submit({ kind: "noop", items: 10 });
  assert.deepEqual(sharesOf(await shoal.wait(next.id)), [[node, 10]]);
});

test("a tab behind another one is really hidden, rests, and comes back", async (t) => {
  const plain = await launchPlain();
  t.after(() => plain.close());
  const page = await plain.open(`${front.url}/join`);
  await page.evaluate(
    async ({ url, token }) => {
      const { join } = await import(`${url}/assets/sdk.js`);
      globalThis.handle = await join({ url, token, gpu: false, name: "put behind" });
    },
    { url: front.url, token: front.token },
  );
  const once = (wanted) =>
    nodesOnce((nodes) => nodes.some((node) => node.name === "put behind" && wanted(node)));
  await once(({ paused, condition }) => !paused && condition.visible);
  const other = await plain.open(`${front.url}/join`);
  await once(({ paused, condition }) => paused && !condition.visible);
  // A browser that also freezes it finds nothing at work.
  await page.freeze(true);
  await other.evaluate(() => true);
  await page.freeze(false);
  await page.show();
  await once(({ paused, condition }) => !paused && condition.visible);
});

/** A page whose battery and network are the test's. */
async function joinWithBattery(options) {
  const page = await browser.newPage();
  await page.goto(`${front.url}/join`);
  await page.evaluate(
    async ({ url, token, options }) => {
      const battery = Object.assign(new EventTarget(), { charging: false, level: 0.8 });
      navigator.getBattery = () => Promise.resolve(battery);
      const connection = Object.assign(new EventTarget(), { type: "wifi", saveData: false });
      Object.defineProperty(navigator, "connection", { value: connection });
      const { join } = await import(`${url}/assets/sdk.js`);
      globalThis.handle = await join({ url, token, gpu: false, name: "on battery", ...options });
      globalThis.change = (target, values, event) => {
        Object.assign(target === "battery" ? battery : connection, values);
        (target === "battery" ? battery : connection).dispatchEvent(new Event(event));
      };
    },
    { url: front.url, token: front.token, options },
  );
  const mine = (nodes) => nodes.find(({ name }) => name === "on battery");
  return {
    page,
    change: (...args) => page.evaluate((args) => globalThis.change(...args), args),
    reason: () => page.evaluate(() => globalThis.handle.status.reason ?? null),
    set: (lend) => page.evaluate((lend) => globalThis.handle.set(lend), lend),
    once: async (wanted) => mine(await nodesOnce((nodes) => mine(nodes) && wanted(mine(nodes)))),
  };
}

test("a low battery rests, a charger wakes, and the coordinator hears of both", async (t) => {
  const { page, change, reason, set, once } = await joinWithBattery({});
  t.after(() => page.close());
  await once(({ condition, paused }) => condition.batteryPercent === 80 && !condition.charging && !paused);
  await change("battery", { level: 0.29 }, "levelchange");
  await once(({ condition, paused }) => condition.batteryPercent === 29 && paused);
  assert.equal(await reason(), "the battery is at 29 %");
  await set({ onLowBattery: "go on" });
  await once(({ paused }) => !paused);
  await set({ onlyPluggedIn: true });
  await once(({ paused }) => paused);
  assert.equal(await reason(), "on battery");
  await change("battery", { charging: true }, "chargingchange");
  await once(({ condition, paused }) => condition.charging && !paused);
  assert.equal(await reason(), null);
  await change("connection", { type: "cellular" }, "change");
  await once(({ condition }) => condition.metered);
  await change("connection", { type: "wifi" }, "change");
  await once(({ condition }) => !condition.metered);
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
  await nodeOnce((node) => node.paused && !node.condition.visible);
  await happens("resume");
  await nodeOnce((node) => !node.paused && node.condition.visible);
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
