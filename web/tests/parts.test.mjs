/** Parts of a model that several devices keep ready are blobs like others: a tab finds its own again after a reload, and devices
 * give each other large ones. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { after as windUp } from "./lib/after.mjs";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { onnxFile } from "./lib/onnx-file.mjs";
import { silentProgram } from "./lib/program.mjs";
import { joinTab } from "./lib/tab.mjs";

const MIB = 1 << 20;
/** A busy machine is slow to open ways and to start engines. */
const PATIENCE_MS = 240_000;
const LEND = { cpu: 1, gpu: false };
const NAME = "chain";

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/** A pool whose tabs' asks for blobs are heard. */
async function startPool(t) {
  const coordinator = await startCoordinator();
  windUp(t, () => coordinator.close());
  const asked = [];
  const front = await startFront(coordinator, { cut: ({ hash }) => void asked.push(hash) });
  windUp(t, () => front.close());
  const shoal = await connect(coordinator.url, coordinator.key);
  const say = async (method, path, body) => {
    const headers = { authorization: `Bearer ${coordinator.key}` };
    const answer = await fetch(`${coordinator.url}${path}`, { method, headers, body: body && JSON.stringify(body) });
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
    return answer.status === 204 ? undefined : answer.json();
  };
  /** Asks for blobs of less than this size: parts, if that is less than the model. */
  const askedBelow = async (most) => {
    const size = async (hash) => {
      const headers = { authorization: `Bearer ${coordinator.key}` };
      const answer = await fetch(`${coordinator.url}/api/v1/blobs/${hash}`, { method: "HEAD", headers });
      return Number(answer.headers.get("content-length"));
    };
    const sizes = await Promise.all(asked.map(size));
    assert.ok(sizes.every((size) => size > 0), `${sizes}`);
    return asked.filter((_, at) => sizes[at] < most);
  };
  return { front, askedBelow, shoal, say, blobs: async () => (await say("GET", "/api/v1/pool")).blobs };
}

/** A browser that shares no files with others. */
async function newContext(t) {
  const context = await browser.newContext();
  windUp(t, () => context.close());
  return context;
}

async function lendTab(context, { front }) {
  const tab = await joinTab(context, front, { lend: LEND });
  await tab.joined();
  return tab;
}

async function until(what, isSo) {
  for (const start = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const found = await isSo();
    if (found) return found;
    assert.ok(Date.now() - start < PATIENCE_MS, `not in time: ${what}`);
  }
}

/** Two products one after the other, each with `side` x `side` weights of its own: what is cut off is one of them. */
function chain(side) {
  const weights = (seed) => {
    const numbers = new Float32Array(side * side).map((_, at) => (Math.imul(at + 1, seed) >> 8) / (1 << 24) / side);
    return { dims: [side, side], numbers };
  };
  return onnxFile({
    nodes: [
      ["MatMul", ["x", "a"], "t"],
      ["MatMul", ["t", "b"], "y"],
    ],
    inputs: { x: [1, side] },
    outputs: { y: [1, side] },
    weights: { a: weights(0x9e3779b1), b: weights(0x85ebca6b) },
  });
}

/** Two devices keep half of a model each, and answer. */
async function inTwo({ shoal, say }, file, side) {
  const { hash } = await shoal.upload(file);
  await say("POST", "/api/v1/services", { kind: "onnx", name: NAME, model: hash, strangers: true, split: "2" });
  await twoAnswer({ say }, side);
}

async function twoAnswer({ say }, side) {
  await until("two devices have it ready", async () => {
    const { services } = await say("GET", "/api/v1/services");
    const { crew } = services.find(({ name }) => name === NAME);
    return crew?.ready && crew.stages.length === 2;
  });
  const x = { name: "x", shape: [1, side], datatype: "FP32", data: Array(side).fill(1) };
  const { outputs } = await say("POST", `/v2/models/${NAME}/infer`, { inputs: [x] });
  assert.ok(outputs[0].data.length === side && outputs[0].data.every(Number.isFinite), "no numbers came out");
  return outputs[0].data;
}

const onShelf = ({ page }) => page.evaluate(async () => (await import("/assets/sdk.js")).shelf.size());

test("tabs that are opened again find their parts in the browser", async (t) => {
  const pool = await startPool(t);
  const side = 512;
  const part = side * side * 4;
  const context = await newContext(t);
  // Both keep their files in the same place, so it does not matter who has which part the next time.
  const join = () => Promise.all([lendTab(context, pool), lendTab(context, pool)]);
  const tabs = await join();
  await inTwo(pool, chain(side), side);
  await until("both parts are kept", async () => (await onShelf(tabs[0])) >= 2 * part);
  // One of them may have had the whole model before the other came.
  const parts = await pool.askedBelow(1.5 * part);
  assert.equal(new Set(parts).size, 2, `not two parts: ${parts}`);
  assert.equal(parts.length, 2, "a part was fetched twice");
  const first = await twoAnswer(pool, side);
  await Promise.all(tabs.map((tab) => tab.close()));
  await until("nobody has it", async () => (await pool.shoal.nodes()).length === 0);

  await join();
  assert.deepEqual(await twoAnswer(pool, side), first);
  assert.deepEqual(await pool.askedBelow(1.5 * part), parts, "a part was fetched again");
});

test("devices get large parts of a model from others that have them", async (t) => {
  const pool = await startPool(t);
  // Enough for parts of more than 8 MiB; smaller ones come from the coordinator before two devices meet.
  const side = 1600;
  const part = side * side * 4;
  const join = async () => lendTab(await newContext(t), pool);
  const common = new Uint8Array(new Uint32Array(2 * MIB).map((_, at) => Math.imul(at, 0x85ebca6b)).buffer);
  /** Every device that gets a line needs the file first, and finds ways to those who have it. */
  const meet = async (tabs, bytes) => {
    const lines = Array.from({ length: 8 }, (_, at) => `${at}`);
    const folder = [{ name: "common.bin", data: common }];
    await until("all have the file", async () => {
      await pool.shoal.exec({ module: silentProgram("meet"), lines, folder, unit: 1, limits: { seconds: 300 } });
      return (await Promise.all(tabs.map(onShelf))).every((size) => size >= bytes);
    });
  };
  const had = await Promise.all([join(), join()]);
  await meet(had, common.byteLength);
  await inTwo(pool, chain(side), side);
  await until("both keep their parts", async () => {
    return (await Promise.all(had.map(onShelf))).every((size) => size >= common.byteLength + part);
  });
  await pool.say("DELETE", `/api/v1/services/${NAME}`);
  // They lend nothing from now on, and give what they have.
  await Promise.all(had.map((tab) => tab.set({ cpu: 0, gpu: false })));

  const need = await Promise.all([join(), join()]);
  await meet(need, common.byteLength);
  await until("there are ways to those who have it", async () => (await pool.blobs()).links >= 2);
  const before = await pool.blobs();
  await inTwo(pool, chain(side), side);
  // Devices tell now and then how much they took from others.
  const [given, fetched] = await until("all bytes of both parts are counted", async () => {
    const { served, exchanged } = await pool.blobs();
    const counted = [exchanged - before.exchanged, served - before.served];
    return counted[0] + counted[1] >= 2 * part ? counted : undefined;
  });
  t.diagnostic(`${(given / MIB).toFixed(1)} MiB from each other, ${(fetched / MIB).toFixed(1)} MiB from the coordinator`);
  assert.ok(given >= part, `only ${given} bytes of two parts of ${part} came from those who have them`);
  assert.ok(fetched <= part, `${fetched} bytes came from the coordinator`);
});
