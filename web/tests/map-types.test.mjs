/** Numbers given to `map` arrive as the kernel's type or not at all: a real coordinator, and a real tab that computes. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

/** Twice its input, for an element and an output of these types. */
const twice = (read, write = read, value = "points[id.x] + points[id.x]") => `
  @group(0) @binding(0) var<storage, read> points: array<${read}>;
  @group(0) @binding(1) var<storage, read_write> output: array<${write}>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) { output[id.x] = ${value}; }
  }`;

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

test("plain numbers are converted to what the kernel reads, and come back as its type", async () => {
  assert.deepEqual(await shoal.map({ wgsl: twice("f32"), input: [1, 22, 3, 4] }), Float32Array.of(2, 44, 6, 8));
  assert.deepEqual(await shoal.map({ wgsl: twice("i32"), input: [-1, 2 ** 30 - 1] }), Int32Array.of(-2, 2 ** 31 - 2));
  assert.deepEqual(await shoal.map({ wgsl: twice("u32"), input: [7, 2 ** 31 - 1] }), Uint32Array.of(14, 2 ** 32 - 2));
  const rounded = await shoal.map({ wgsl: twice("f32", "i32", "i32(points[id.x])"), input: Float32Array.of(1.5, -2.5) });
  assert.deepEqual(rounded, Int32Array.of(1, -2));
});

test("nested lists come back nested, and a shape with its shape", async () => {
  const cube = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]];
  const doubled = [[[2, 4], [6, 8]], [[10, 12], [14, 16]]];
  assert.deepEqual(await shoal.map({ wgsl: twice("f32"), input: cube }), doubled);
  const input = { data: Int32Array.of(1, 2, 3, 4, 5, 6), shape: [3, 2] };
  assert.deepEqual(await shoal.map({ wgsl: twice("i32"), input }), { data: Int32Array.of(2, 4, 6, 8, 10, 12), shape: [3, 2] });
});

test("vectors are lists, also those of three, which have a gap in memory", async () => {
  const pairs = [[1, 2], [3, 4], [5, 6]];
  assert.deepEqual(await shoal.map({ wgsl: twice("vec2<f32>"), input: pairs }), [[2, 4], [6, 8], [10, 12]]);
  assert.deepEqual(await shoal.map({ wgsl: twice("vec2<f32>"), input: Float32Array.of(1, 2, 3, 4) }), Float32Array.of(2, 4, 6, 8));
  const points = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]];
  const doubled = [[2, 4, 6], [8, 10, 12], [14, 16, 18], [20, 22, 24]];
  assert.deepEqual(await shoal.map({ wgsl: twice("vec3<f32>"), input: points }), doubled);
  const sums = await shoal.map({ wgsl: twice("vec3<f32>", "f32", "points[id.x].x + points[id.x].z"), input: points });
  assert.deepEqual(sums, [4, 10, 16, 22]);
});

test("what is no f32 is refused with words, and nothing is submitted", async () => {
  const before = (await shoal.jobs()).length;
  const wgsl = twice("f32");
  const refused = (input, words) => assert.rejects(shoal.map({ wgsl, input }), words);
  await refused(new Float64Array(4), /input is a Float64Array, but the kernel's "points" is array<f32>: convert it with Float32Array\.from\(values\)/);
  await refused(new Uint32Array(4), /input is a Uint32Array, but the kernel's "points" is array<f32>/);
  await refused(new Uint8Array(16), /or pass \{ data, raw: true \}/);
  await refused([1, "22"], /input\[1\] is the text "22"/);
  await refused([[1, 2], [3]], /ragged/);
  await assert.rejects(shoal.map({ wgsl: twice("i32"), input: [1.5] }), /input\[0\] is 1.5, which is not a whole number/);
  assert.equal((await shoal.jobs()).length, before);
});

test("bytes are taken where that is said, and stored ones are held against their type", async () => {
  const wgsl = twice("f32");
  const data = Float32Array.of(1, 2).buffer;
  assert.deepEqual(await shoal.map({ wgsl, input: { data, raw: true } }), Float32Array.of(2, 4));
  const blob = (await shoal.upload(data)).hash;
  assert.deepEqual(await shoal.map({ wgsl, input: { blob } }), Float32Array.of(2, 4));
  assert.deepEqual(await shoal.map({ wgsl, input: { data: { blob }, type: "f32" } }), Float32Array.of(2, 4));
  const wrong = shoal.map({ wgsl, input: { data: { blob }, type: "f64" } });
  await assert.rejects(wrong, ({ code, status, message }) => {
    assert.match(message, /the request says that input 0 holds f64, but the kernel reads array<f32>: convert the numbers to f32/);
    return code === "wrong_type" && status === 422;
  });
});

test("a kernel says what it reads before anything is sent", async () => {
  const { inputs, output } = await shoal.checkKernel({ wgsl: twice("vec3<f32>", "u32", "u32(points[id.x].x)") });
  assert.deepEqual(inputs, [{ name: "points", type: "vec3<f32>", scalar: "f32", lanes: 4, stride: 16 }]);
  assert.deepEqual([output.type, output.scalar, output.lanes], ["u32", "u32", 1]);
  await assert.rejects(shoal.checkKernel({ wgsl: "fn main( {" }), ({ code, details }) => code === "bad_kernel" && details.line === 1);
});
