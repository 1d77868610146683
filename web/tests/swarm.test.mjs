/** Blobs that devices give each other: browsers of their own, each with its own files, and a machine beside them. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { after as windUp } from "./lib/after.mjs";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { silentProgram } from "./lib/program.mjs";
import { joinTab } from "./lib/tab.mjs";

const MIB = 1 << 20;
/** Nothing here takes long, but ten browsers on a busy machine may. */
const PATIENCE_MS = 240_000;

let browser;
let blobs = 0;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

async function startPool(t) {
  const coordinator = await startCoordinator();
  windUp(t, () => coordinator.close());
  const front = await startFront(coordinator);
  windUp(t, () => front.close());
  const shoal = await connect(coordinator.url, coordinator.key);
  return { coordinator, front, shoal };
}

/** A tab of a browser that shares no files with others. */
async function device(t, pool) {
  const context = await browser.newContext();
  windUp(t, () => context.close());
  const tab = await joinTab(context, pool, { lend: { cpu: 1, gpu: false } });
  await tab.joined();
  return tab;
}

function newBlob(size) {
  const seed = ++blobs * 0x9e3779b1;
  return new Uint8Array(new Uint32Array(size / 4).map((_, at) => Math.imul(at ^ seed, 0x85ebca6b)).buffer);
}

/** Every device that gets a line must have the file first. */
function run(shoal, data, lines) {
  const folder = [{ name: "weights.bin", data }];
  const text = Array.from({ length: lines }, (_, at) => `${at}`);
  // Ten browsers share the cores of one machine: what is quick elsewhere may take long here.
  return shoal.exec({ module: silentProgram(`swarm ${blobs}`), lines: text, folder, unit: 1, limits: { seconds: 300 } });
}

async function spread({ url, key }) {
  const answer = await fetch(`${url}/api/v1/pool`, { headers: { authorization: `Bearer ${key}` } });
  return (await answer.json()).blobs;
}

const onShelf = ({ page }) => page.evaluate(async () => (await import("/assets/sdk.js")).shelf.size());

async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); ) {
    assert.ok(Date.now() - start < PATIENCE_MS, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Submits until all devices have the blob: one that was slow to ask may find no line left. */
async function runUntilAllHave(shoal, tabs, data) {
  let all = false;
  const have = async () => (await Promise.all(tabs.map(onShelf))).every((size) => size >= data.byteLength);
  const jobs = (async () => {
    while (!all) await run(shoal, data, 4 * tabs.length);
  })();
  const asked = until("all have the blob", have).finally(() => (all = true));
  await Promise.all([asked, jobs]);
}

test("ten browsers give each other most of what they need", async (t) => {
  const { coordinator, front, shoal } = await startPool(t);
  const tabs = await Promise.all(Array.from({ length: 10 }, () => device(t, front)));
  const data = newBlob(16 * MIB);
  await runUntilAllHave(shoal, tabs, data);
  const { served, exchanged } = await spread(coordinator);
  t.diagnostic(`${(served / data.byteLength).toFixed(2)} copies from the coordinator, ${(exchanged / data.byteLength).toFixed(2)} from each other`);
  // About one copy where ways open soon; a busy machine is slow to open them.
  assert.ok(served < 4 * data.byteLength, `${served} bytes came from the coordinator`);
  assert.ok(exchanged > 5 * data.byteLength, `${exchanged} bytes went from one to another`);
});

test("a browser gets what a machine has, and a machine what a browser has", async (t) => {
  const { coordinator, front, shoal } = await startPool(t);
  const machine = await startNode(coordinator.joinLink, ["--no-gpu", "--cpus", "1"]);
  windUp(t, () => machine.close());
  const data = newBlob(12 * MIB);
  await until("the machine is here", async () => (await shoal.nodes()).length === 1);
  await run(shoal, data, 4);
  const before = await spread(coordinator);
  const tab = await device(t, front);
  await runUntilAllHave(shoal, [tab], data);
  const between = await spread(coordinator);
  assert.ok(between.exchanged >= data.byteLength / 2, `${between.exchanged} bytes came from the machine`);
  assert.ok(between.served < before.served + data.byteLength / 2, "most of it came from the coordinator again");
  await machine.close();
  const other = await startNode(coordinator.joinLink, ["--no-gpu", "--cpus", "1"]);
  windUp(t, () => other.close());
  await until("the other machine is here", async () => (await shoal.nodes()).length === 2);
  await until("it got most from the browser", async () => {
    await run(shoal, data, 8);
    return (await spread(coordinator)).exchanged >= between.exchanged + data.byteLength / 2;
  });
});
