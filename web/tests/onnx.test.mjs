/** A tab keeps ONNX models ready and answers for them, without a native node. */

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage, workerCount } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { floats, onnxFile } from "./lib/onnx-file.mjs";
import { startPool } from "./lib/pool.mjs";
import { joinTab } from "./lib/tab.mjs";

/** `y = 2 x + b`, for rows of three numbers. */
const LINE = onnxFile({
  nodes: [
    ["Mul", ["x", "two"], "t"],
    ["Add", ["t", "b"], "y"],
  ],
  inputs: { x: ["rows", 3] },
  outputs: { y: ["rows", 3] },
  weights: { two: { dims: [1], numbers: [2] }, b: { dims: [3], numbers: [0.5, -1, 100] } },
});
/** What a detector of objects takes: the mean of each colour, and the picture's negative. */
const SIDE = 640;
const PICTURE = onnxFile({
  nodes: [
    ["GlobalAveragePool", ["picture"], "mean"],
    ["Neg", ["picture"], "negative"],
  ],
  inputs: { picture: [1, 3, SIDE, SIDE] },
  outputs: { mean: [1, 3, 1, 1], negative: [1, 3, SIDE, SIDE] },
});
/** Far more than any device computes in a second: large squares, made of two rows, multiplied again and again. */
const STEPS = 100;
const ENDLESS = onnxFile({
  nodes: Array.from({ length: STEPS }, (_, at) =>
    at === 0 ? ["MatMul", ["a", "b"], "h1"] : ["MatMul", [`h${at}`, "h1"], at === STEPS - 1 ? "y" : `h${at + 1}`],
  ),
  inputs: { a: ["n", 1], b: [1, "n"] },
  outputs: { y: ["n", "n"] },
});
/** The largest sum of two numbers that are not 0. How many there are only a run can tell, so nobody knows before that the
 * table of all sums needs far more than a module's memory. */
const TABLE = onnxFile({
  nodes: [
    ["NonZero", ["x"], "places"],
    ["Gather", ["x", "places"], "across"],
    ["Transpose", ["across"], "down"],
    ["Add", ["across", "down"], "sums"],
    ["ReduceMax", ["sums"], "largest"],
  ],
  inputs: { x: ["n"] },
  outputs: { largest: [1, 1] },
});

/** The largest product of two numbers: the table of all of them is the square of what a request has. */
const SQUARE = onnxFile({
  nodes: [
    ["MatMul", ["a", "b"], "table"],
    ["ReduceMax", ["table"], "largest"],
  ],
  inputs: { a: ["n", 1], b: [1, "n"] },
  outputs: { largest: [1, 1] },
});

let coordinator;
let front;
let browser;
let context;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
});

beforeEach(async () => {
  await context?.close();
  for (const { name } of (await json("GET", "/api/v1/services")).services) await ask("DELETE", `/api/v1/services/${name}`);
  await until("the tab before to be gone", async () => (await shoal.nodes()).length === 0);
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

function ask(method, path, body, headers = {}) {
  return fetch(`${coordinator.url}${path}`, { method, headers: { authorization: `Bearer ${coordinator.key}`, ...headers }, body });
}

async function json(method, path, body) {
  const answer = await ask(method, path, body && JSON.stringify(body));
  const said = await answer.json();
  assert.ok(answer.ok, JSON.stringify(said));
  return said;
}

async function add(name, file, rest = {}) {
  const { hash } = await shoal.upload(file);
  return ask("POST", "/api/v1/services", JSON.stringify({ name, kind: "onnx", model: hash, strangers: true, ...rest }));
}

async function added(name, file, rest) {
  const answer = await add(name, file, rest);
  assert.equal(answer.status, 201, await answer.text());
}

async function tabOf(options = {}, place = front) {
  const tab = await joinTab(context, place, options);
  await tab.joined();
  return tab;
}

/** Numbers as JSON. */
function infer(name, inputs) {
  const listed = Object.entries(inputs).map(([name, [shape, data]]) => ({ name, shape, datatype: "FP32", data }));
  return ask("POST", `/v2/models/${name}/infer`, JSON.stringify({ inputs: listed }));
}

/** For models that take a column and a row. */
function rows(name, side) {
  return infer(name, { a: [[side, 1], Array(side).fill(2)], b: [[1, side], Array(side).fill(3)] });
}

/** Numbers as bytes behind the JSON, there and back: by the outputs' names. */
async function inferBytes(name, input, shape, numbers) {
  const data = floats(numbers);
  const inputs = [{ name: input, shape, datatype: "FP32", parameters: { binary_data_size: data.length } }];
  const head = Buffer.from(JSON.stringify({ inputs, parameters: { binary_data_output: true } }));
  const length = { "inference-header-content-length": String(head.length) };
  const answer = await ask("POST", `/v2/models/${name}/infer`, Buffer.concat([head, data]), length);
  const body = Buffer.from(await answer.arrayBuffer());
  assert.equal(answer.status, 200, body.subarray(0, 500).toString());
  const end = Number(answer.headers.get("inference-header-content-length"));
  let at = end;
  const outputs = JSON.parse(body.subarray(0, end).toString()).outputs.map(({ name, shape, parameters }) => {
    const bytes = body.subarray(at, (at += parameters.binary_data_size));
    return [name, { shape, numbers: new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)) }];
  });
  return Object.fromEntries(outputs);
}

async function answered(name, x = [1, 2, 3]) {
  const answer = await infer(name, { x: [[1, 3], x] });
  const said = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(said));
  assert.deepEqual(said.outputs, [
    { name: "y", datatype: "FP32", shape: [1, 3], data: [2 * x[0] + 0.5, 2 * x[1] - 1, 2 * x[2] + 100] },
  ]);
}

/** No time is promised: a test that hangs is ended from outside. */
async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 25))) {
    assert.ok(Date.now() - start < 60_000, `waited in vain for ${what}`);
  }
}

const engines = async () => {
  const [node] = await shoal.nodes();
  return node?.engines.map((engine) => engine.name) ?? [];
};

test("a page that joins fetches nothing of models, and offers them", async () => {
  front.served.clear();
  const page = await openPage(context, front.joinLink);
  await page.getByRole("button", { name: "Lend this device" }).click();
  await page.locator(".hero .status", { hasText: "Lending" }).waitFor();
  await until("models to be offered", async () => (await engines()).includes("onnx"));
  await shoal.wait((await shoal.submit({ kind: "noop", items: 3 })).id);
  assert.ok(front.served.has("/assets/brain_bg.wasm"));
  assert.deepEqual([...front.served].filter((path) => path.includes("onnx")), []);

  await added("line", LINE);
  await answered("line");
  assert.deepEqual([...front.served].filter((path) => path.includes("onnx")).sort(), [
    "/assets/onnx-worker.js",
    "/assets/onnx_bg.wasm",
  ]);
  const kept = page.getByRole("list", { name: "Kept ready" });
  await kept.getByText("line").waitFor();
});

test("numbers are right, as JSON and as bytes", async () => {
  await tabOf();
  await added("line", LINE);
  await answered("line");
  const { y } = await inferBytes("line", "x", [2, 3], [1, 2, 3, -0.25, 1e6, 0]);
  assert.deepEqual(y.shape, [2, 3]);
  assert.deepEqual([...y.numbers], [2.5, 3, 106, 0, 1_999_999, 100]);
  // Several at once, each its own answer.
  await Promise.all(Array.from({ length: 12 }, (_, at) => answered("line", [at, -at, at * at])));
});

test("a tab runs a model over many inputs, and answers requests meanwhile", async () => {
  await tabOf();
  await added("line", LINE);
  const rows = 50_000;
  const numbers = Float32Array.from({ length: rows * 3 }, (_, at) => (at % 1000) - 500);
  const [model, blob] = [(await shoal.upload(LINE)).hash, (await shoal.upload(new Uint8Array(numbers.buffer))).hash];
  const inputs = [{ name: "x", blob, type: "float32", shape: [rows, 3] }];
  const job = await json("POST", "/api/v1/jobs", { kind: "onnx", model, inputs, unit: 1000 });
  await Promise.all(Array.from({ length: 12 }, (_, at) => answered("line", [at, -at, at * at])));
  const done = await shoal.wait(job.id);
  assert.deepEqual(done.tensors, [{ name: "y", type: "float32", shape: [3] }]);
  const result = new Float32Array(await (await ask("GET", `/api/v1/jobs/${job.id}/result`)).arrayBuffer());
  const offsets = [0.5, -1, 100];
  assert.deepEqual(result, numbers.map((number, at) => 2 * number + offsets[at % 3]));
  await answered("line");
});

test("wrong tensors are refused with what was expected, and so is a file that is no model", async () => {
  await tabOf();
  await added("line", LINE);
  const refused = async (inputs, words) => {
    const answer = await infer("line", inputs);
    assert.deepEqual([answer.status, await answer.json()], [400, { error: words, code: "bad_tensors" }]);
  };
  await refused({ x: [[1, 2], [1, 2]] }, 'the input "x" has the shape [1, 2]: expected float32[rowsx3]');
  await refused({ z: [[1, 3], [1, 2, 3]] }, 'the model has no input "z", only x');
  await refused({}, 'the input "x" is missing: expected float32[rowsx3]');
  // What the coordinator does not look at, the tab's engine refuses too.
  const raw = await ask("POST", "/api/v1/services/line", Buffer.from("no tensors"));
  assert.equal(raw.status, 502);
  assert.match((await raw.json()).error.message, /these bytes are not tensors/);
  const garbage = await add("garbage", Buffer.from("this is no model at all"));
  assert.equal(garbage.status, 422);
  assert.equal((await garbage.json()).error.code, "bad_model");
  await answered("line");
});

test("a picture of five megabytes goes in, and another comes out", async () => {
  await tabOf();
  await added("picture", PICTURE);
  const pixels = new Float32Array(3 * SIDE * SIDE).map((_, at) => Math.floor(at / SIDE ** 2) + (at % 2 ? 0.25 : -0.25));
  const { mean, negative } = await inferBytes("picture", "picture", [1, 3, SIDE, SIDE], pixels);
  assert.deepEqual(mean.shape, [1, 3, 1, 1]);
  mean.numbers.forEach((found, colour) => assert.ok(Math.abs(found - colour) < 1e-3, `${found} instead of ${colour}`));
  assert.equal(negative.numbers.length, pixels.length);
  assert.ok(negative.numbers.every((found, at) => found === -pixels[at]));
});

test("a run keeps to the memory that the donor lends, and to more when more is lent", async () => {
  const MIB = 2 ** 20;
  const tab = await tabOf({ lend: { memory: 160 * MIB } });
  await added("square", SQUARE);
  const side = 6_500;
  const refused = await rows("square", side);
  assert.equal(refused.status, 502);
  assert.match((await refused.json()).error, /needs 162 MiB; 159 MiB are left of the 160 MiB lent here/);
  await tab.set({ memory: 200 * MIB });
  await until("more to be lent", async () => (await shoal.nodes())[0]?.memory === 200 * MIB);
  const answer = await rows("square", side);
  assert.deepEqual((await answer.json()).outputs[0].data, [6]);
});

test("a run that takes too long is ended, and other models answer again", async () => {
  await tabOf();
  await added("endless", ENDLESS, { limits: { seconds: 1 } });
  await added("line", LINE);
  await answered("line");
  const answer = await rows("endless", 4_000);
  assert.equal(answer.status, 502);
  assert.match((await answer.json()).error, /^over the time limit of 1\.000 s/);
  await answered("line");
});

test("a run that stops the engine costs nobody else anything", async () => {
  await tabOf();
  await added("table", TABLE);
  await added("line", LINE);
  await answered("line");
  const answer = await infer("table", { x: [[24_000], Array(24_000).fill(2.5)] });
  assert.equal(answer.status, 502);
  assert.match((await answer.json()).error, /the engine panicked when it ran the model/);
  await answered("line");
  assert.deepEqual((await (await infer("table", { x: [[10], Array(10).fill(2.5)] })).json()).outputs[0].data, [5]);
});

test("a service that ends takes its model along, and the last one the Worker", async () => {
  const { page } = await tabOf();
  await until("the first Workers", async () => (await workerCount(page)) > 0);
  const before = await workerCount(page);
  await added("line", LINE);
  await added("picture", PICTURE);
  await answered("line");
  await ask("DELETE", "/api/v1/services/picture");
  await answered("line");
  await ask("DELETE", "/api/v1/services/line");
  await until("the Worker to end", async () => (await workerCount(page)) === before);
  await added("line", LINE);
  await answered("line");
});

test("when the tab is closed, another one takes over", async () => {
  const first = await tabOf();
  await added("line", LINE);
  await answered("line");
  await tabOf();
  await first.close();
  await answered("line");
});

test("a page of another site keeps models too", async () => {
  const site = await startPool();
  try {
    front.served.clear();
    await tabOf({ from: `${site.url}/blank` });
    assert.deepEqual([...front.served].filter((path) => path.includes("onnx")), []);
    await added("line", LINE);
    await answered("line");
  } finally {
    await site.close();
  }
});

test("a tab whose module does not load offers no models any more, and another one answers", async () => {
  const broken = await startFront(coordinator, {
    file: (path, bytes) => (path.endsWith("onnx_bg.wasm") ? Buffer.from("no module") : bytes),
  });
  try {
    await tabOf({}, broken);
    await until("models to be offered", async () => (await engines()).includes("onnx"));
    await added("line", LINE);
    await until("models to be withdrawn", async () => !(await engines()).includes("onnx"));
    assert.ok((await engines()).includes("wasi"));
    await tabOf();
    await answered("line");
  } finally {
    await broken.close();
  }
});
