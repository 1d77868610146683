/** A tab computes for a real coordinator: map, render and exec, limits, and leaving. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const KERNELS = new URL("../../examples/kernels/", import.meta.url);
const kernel = (name) => readFile(new URL(`${name}.wgsl`, KERNELS), "utf8");

let coordinator;
let front;
let browser;
let tab;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  tab = await joinTab(browser, front);
  await tab.joined();
});

after(async () => {
  await browser?.close();
  await coordinator?.close();
  await front?.close();
});

test("the tab is seen as a browser node with a software GPU", async () => {
  const [node] = await shoal.nodes();
  assert.equal(node.kind, "browser");
  assert.equal(node.gpu.software, true);
  assert.match(node.name, /Chrome on Linux/);
});

test("a map", async () => {
  const input = new Float32Array(3_000_001).map((_, i) => i / 1000);
  let progress = 0;
  const out = await shoal.map({ wgsl: await kernel("wave"), input, out: "f32" }, { onProgress: () => progress++ });
  assert.equal(out.length, input.length);
  const wave = (x, length, height, phase) => height * Math.sin((x * 2 * Math.PI) / length + phase);
  for (const at of [0, 1, 77_777, 3_000_000]) {
    const x = input[at];
    const wanted = wave(x, 8, 1, 0) + wave(x, 3.1, 0.4, 1.3) + wave(x, 1.7, 0.2, 0.7) + wave(x, 0.61, 0.05, 2.9);
    assert.ok(Math.abs(out[at] - wanted) < 5e-3, `item ${at}: ${out[at]} instead of ${wanted}`);
  }
  assert.ok(progress > 0);
});

test("a map with a whole input and parameters", async () => {
  const wgsl = `
    struct Params { scale: f32, offset: u32, length: u32, total: u32 }
    @group(0) @binding(0) var<storage, read> index: array<u32>;
    @group(0) @binding(1) var<storage, read> table: array<f32>;
    @group(0) @binding(2) var<storage, read_write> output: array<f32>;
    @group(0) @binding(3) var<uniform> params: Params;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      if (id.x >= params.length) { return; }
      output[id.x] = table[index[id.x]] * params.scale + f32(params.offset + id.x) / f32(params.total);
    }`;
  const items = 100_000;
  const index = new Uint32Array(items).map((_, i) => (i * 7) % 1000);
  const table = new Float32Array(1000).map((_, i) => i * i);
  const inputs = [index, { data: table, whole: true }];
  const out = await shoal.map({ wgsl, inputs, params: { scale: 0.5 }, out: "f32" });
  for (const at of [0, 1, 50_000, items - 1]) {
    const wanted = Math.fround(table[index[at]] * 0.5 + at / items);
    assert.ok(Math.abs(out[at] - wanted) <= wanted * 1e-6, `item ${at}: ${out[at]} instead of ${wanted}`);
  }
});

test("a render", async () => {
  const picture = await shoal.render({ wgsl: await kernel("mandelbrot"), width: 200, height: 130 });
  assert.equal(picture.pixels.length, 200 * 130 * 4);
  assert.ok(new Set(picture.pixels).size > 10, "more than one colour");
});

test("the wrong output type is refused with words", async () => {
  const wgsl = await kernel("wave");
  const input = new Float32Array(64);
  await assert.rejects(shoal.map({ wgsl, input, out: "u32" }), /type f32, not u32/);
});

test("stop stops at once and the units go back", async () => {
  await tab.stop();
  await tab.page.waitForFunction(() => globalThis.shoalTab.handle.status.state === "stopped");
  const gone = async () => (await shoal.nodes()).length === 0;
  for (let tries = 0; !(await gone()) && tries < 20; tries++) await new Promise((r) => setTimeout(r, 50));
  assert.ok(await gone());
});

test("a kernel that never ends is ended, and the tab lives", async () => {
  const other = await joinTab(browser, front);
  await other.joined();
  const wgsl = `
    @group(0) @binding(0) var<storage, read> input: array<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
      var x = input[id.x];
      loop { x = x * 1.0000001 + 1.0; if (x < 0.0) { break; } }
      output[id.x] = x;
    }`;
  const limits = { seconds: 1 };
  await assert.rejects(
    shoal.map({ wgsl, input: new Float32Array(64), limits }),
    /time limit/,
  );
  // A software GPU stays stuck with the kernel, so the tab lends it no more; its other lanes go on.
  await other.page.waitForFunction(() => globalThis.shoalTab.handle.status.gpuProblem, null, { timeout: 40_000 });
  assert.match((await other.status()).gpuProblem, /does not answer/);
  assert.equal((await shoal.nodes())[0].gpu, null);
});
