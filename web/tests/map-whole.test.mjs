/** A kernel given to the SDK means what it means over the whole array, however its items are put into units: a real
 * coordinator, and real tabs that compute. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const COUNT = 30_000;
const numbers = Float32Array.from({ length: COUNT }, (_, i) => (i * 37) % 1009);
const kernel = (body, write = "f32", read = "f32") => `
  @group(0) @binding(0) var<storage, read> input: array<${read}>;
  @group(0) @binding(1) var<storage, read_write> output: array<${write}>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) { return; }
    ${body}
  }`;
/** Many units, so that there are many seams. */
const map = (body, more = {}) => shoal.map({ wgsl: kernel(body), input: numbers, unit: 1000, ...more });
const expected = (make) => Float32Array.from(numbers, (x, i) => make(x, i));
const clamped = (i) => numbers[Math.min(Math.max(i, 0), COUNT - 1)];

let coordinator;
let front;
let browser;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  await (await joinTab(await browser.newContext(), front)).joined();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

test("neighbours are there at every seam", async () => {
  assert.deepEqual(await map("output[i] = input[i] + input[i + 1];"), expected((x, i) => x + clamped(i + 1)));
  assert.deepEqual(await map("if (i > 0u) { output[i] = input[i] - input[i - 1u]; }"), expected((x, i) => (i ? x - clamped(i - 1) : 0)));
  const ring = await map("output[i] = input[i - 1u] + input[i + 1u];", { edge: "wrap" });
  assert.deepEqual(ring, expected((_, i) => numbers[(i + COUNT - 1) % COUNT] + numbers[(i + 1) % COUNT]));
});

test("an index is the one in the whole array, and so is a length", async () => {
  assert.deepEqual(await map("output[i] = f32(id.x);"), expected((_, i) => i));
  assert.deepEqual(await map("output[i] = f32(arrayLength(&input));"), expected(() => COUNT));
  assert.deepEqual(await map("output[i] = input[arrayLength(&input) - 1u - i];"), expected((_, i) => numbers[COUNT - 1 - i]));
});

test("what can be no map is refused, and what looks too far is stopped, each with the way out", async () => {
  await assert.rejects(shoal.map({ wgsl: kernel("atomicAdd(&output[u32(input[i]) % 8u], 1u);", "atomic<u32>"), input: numbers }), /--reduce sum/);
  await assert.rejects(map("output[i + 1u] = input[i];"), /Turn it around/);
  await assert.rejects(map("output[(i * 7u) % arrayLength(&output)] = input[i];"), /which is another item's/);
  const far = { input: { data: numbers, overlap: 2 }, unit: 1000 };
  await assert.rejects(map("output[i] = input[i + u32(input[i])];", far), /reads `input\[\d+\]`/);
});

test("outputs are brought together", async () => {
  const reduce = (body, how, more = {}) => shoal.reduce({ wgsl: kernel(body), input: numbers, reduce: how, ...more });
  const sum = numbers.reduce((sum, x) => sum + x, 0);
  assert.equal(await reduce("output[i] = input[i];", "sum"), sum);
  assert.equal(await reduce("output[i] = input[i];", "mean"), sum / COUNT);
  assert.equal(await reduce("output[i] = input[i] - f32(i);", "min"), Math.min(...numbers.map((x, i) => x - i)));
  const counts = await shoal.reduce({
    wgsl: kernel("output[i] = 4000000000u + u32(input[i] * 0.0);", "u32"),
    input: numbers,
    reduce: "sum",
  });
  assert.equal(counts, 4_000_000_000n * BigInt(COUNT), "more than 32 bits hold");
  const first = { wgsl: "fn combine(a: f32, b: f32) -> f32 { return select(b, a, a >= b); }" };
  assert.equal(await reduce("output[i] = input[i];", first), Math.max(...numbers));
  await assert.rejects(reduce("output[i] = input[i];", { wgsl: "fn combine(a: u32) -> u32 { return a; }" }), /fn combine\(a: f32, b: f32\) -> f32/);
  await assert.rejects(map("output[i] = input[i];", { reduce: "sum" }), /call reduce/);
});
