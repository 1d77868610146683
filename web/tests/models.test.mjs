/** Models in a page: here, on the pool, or wherever it is better. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { onnxFile } from "./lib/onnx-file.mjs";

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
/** A picture of 8 by 8 comes out as it went in. */
const COPY = onnxFile({
  nodes: [["Neg", ["picture"], "n"], ["Neg", ["n"], "same"]],
  inputs: { picture: [1, 3, 8, 8] },
  outputs: { same: [1, 3, 8, 8] },
});
const Y = [2.5, 3, 106];

let coordinator;
let front;
let browser;
let node;
let context;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  node = await startNode(coordinator.joinLink, ["--node-name", "desk · 1"]);
  shoal = await connect(coordinator.url, coordinator.key);
  for (const [name, file] of Object.entries({ line: LINE, copy: COPY })) {
    await shoal.addModel(file, { name, strangers: true });
  }
  await until("the node to have both", async () => (await shoal.models()).every(({ readyOn }) => readyOn.length === 1));
});

beforeEach(async () => {
  await context?.close();
  await front?.close();
  front = await startFront(coordinator);
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await node?.close();
  await coordinator?.close();
});

async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 25))) {
    assert.ok(Date.now() - start < 60_000, `waited in vain for ${what}`);
  }
}

/** A page with the SDK and a model, as `shoal` and `model` of the page. */
async function pageWith(name, options = {}, place = front) {
  const page = await openPage(context, `${place.url}/join`);
  await page.evaluate(
    async ({ url, key, name, options }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      globalThis.shoal = await connect(url, key);
      globalThis.model = await globalThis.shoal.model(name, options);
      /** What a call gives, or how it is refused, as something that can leave the page. */
      globalThis.told = async (call) => {
        try {
          const { outputs, ran } = await call();
          const plain = Object.entries(outputs).map(([name, { data, shape }]) => [name, { data: [...data], shape }]);
          return { outputs: Object.fromEntries(plain), ran };
        } catch (error) {
          return { code: error.code, message: error.message, name: error.name };
        }
      };
    },
    { url: place.url, key: place.key, name, options },
  );
  return page;
}

/** What is asked over the network from now on, without files: those of the page and of its engines come when they are wanted,
 * such as the page's icon or a faster engine, and nothing of an input can be in them. */
function callsOf(place) {
  const made = [];
  place.on("request", (request) => {
    const { protocol, pathname } = new URL(request.url());
    const isFile = request.method() === "GET" && pathname.startsWith("/assets/");
    if (protocol.startsWith("http") && !isFile) made.push(`${request.method()} ${pathname}`);
  });
  return made;
}

const run = (page, where, options = {}) =>
  page.evaluate(({ where, options }) => told(() => model.run({ x: Float32Array.of(1, 2, 3) }, { where, ...options })), { where, options });

test("on the pool a model says which node ran it, for how long, and what was sent", async () => {
  const page = await pageWith("line");
  const { outputs, ran } = await run(page, "remote");
  assert.deepEqual(outputs, { y: { data: Y, shape: [1, 3] } });
  assert.equal(ran.where, "remote");
  assert.equal(ran.node.name, "desk · 1");
  assert.equal(ran.why, "you asked for remote");
  assert.ok(ran.ms.run > 0 && ran.ms.total >= ran.ms.run, JSON.stringify(ran));
  assert.ok(ran.bytes.sent > 12 && ran.bytes.received > 12, JSON.stringify(ran));
});

test("a local model is fetched once, shows its progress, and sends nothing of its input, not even offline", async () => {
  const page = await pageWith("line", { where: "local" });
  const made = callsOf(context);
  const seen = await page.evaluate(async () => {
    const seen = [];
    await model.load({ onProgress: (loaded, total) => seen.push([loaded, total]) });
    return seen;
  });
  assert.deepEqual(seen.at(-1), [LINE.length, LINE.length]);
  // Offline for Workers of Workers too, which the browser's own switch leaves out.
  await front.close();
  front = undefined;
  const { outputs, ran } = await run(page);
  assert.deepEqual(outputs, { y: { data: Y, shape: [1, 3] } });
  assert.deepEqual([ran.where, ran.node, ran.bytes], ["local", undefined, { sent: 0, received: 0 }]);
  assert.deepEqual(made.map((call) => call.replace(/[0-9a-f]{64}/, "HASH")), ["GET /api/v1/blobs/HASH"]);
});

test("what does not fit is refused before anything is sent", async () => {
  const page = await pageWith("line");
  const made = callsOf(page);
  for (const where of ["auto", "local", "remote"]) {
    const refused = await page.evaluate((where) => told(() => model.run({ x: new Float64Array(3) }, { where })), where);
    assert.equal(refused.message, 'the input "x" is of the type Float64Array: expected Float32Array for float32[?x3]');
  }
  assert.deepEqual(made, []);
  // What only the model itself can tell is refused too, and not tried elsewhere.
  const aborted = await page.evaluate(() => told(() => model.run({ x: new Float32Array(3) }, { signal: AbortSignal.abort() })));
  assert.equal(aborted.name, "AbortError");
});

test("a picture is made ready by whoever runs the model, alike here and there", async () => {
  const page = await pageWith("copy");
  const look = (where) =>
    page.evaluate((where) => {
      const pixels = Uint8Array.from({ length: 4 * 6 * 3 }, (_, at) => (at * 37) % 256);
      return told(() => model.run({ picture: { pixels, width: 4, height: 6 } }, { where }));
    }, where);
  const [here, there] = [await look("local"), await look("remote")];
  assert.equal(here.ran.where, "local", JSON.stringify(here));
  assert.deepEqual(here.outputs, there.outputs);
  assert.ok(there.ran.bytes.sent < 4 * 6 * 3 + 400, "one byte for each colour");
  const [first] = here.outputs.same.data;
  assert.ok(Math.abs(first - 114 / 255) < 1e-6, "a margin of grey");
  const boxes = await page.evaluate(() => {
    const picture = { pixels: new Uint8Array(12), width: 2, height: 2 };
    return told(() => model.run({ picture }, { where: "remote", boxes: {} }));
  });
  assert.match(boxes.message, /boxes are expected as \[1, 4 \+ classes, N\]/);
});

test("auto loads the model beside the pool's answers, measures both, and says why it chose", async () => {
  const page = await pageWith("line");
  const first = await run(page, "auto");
  assert.deepEqual([first.ran.where, first.ran.why], ["remote", "this page is still loading the model"]);
  await page.waitForFunction(() => model.isLoaded);
  const whys = [];
  for (let at = 0; at < 6; at++) whys.push((await run(page, "auto")).ran);
  assert.ok(whys.some(({ where }) => where === "local"), JSON.stringify(whys));
  assert.equal(whys[0].why, "measuring this device");
  assert.match(whys.at(-1).why, /^(faster|about as fast|measuring again): .* ms on this device, .* ms on the pool$/);
});

test("auto goes on in the page when the pool is gone, within its budget", async () => {
  const page = await pageWith("line");
  assert.equal((await run(page, "auto")).ran.where, "remote");
  await page.waitForFunction(() => model.isLoaded);
  await front.close();
  front = undefined;
  for (let at = 0; at < 3; at++) {
    const { outputs, ran } = await run(page, "auto", { budgetMs: 20_000 });
    assert.deepEqual(outputs.y.data, Y);
    assert.equal(ran.where, "local");
  }
  const remote = await run(page, "remote");
  assert.equal(remote.code, "unreachable");
});

test("auto goes on in the page when the model is removed from the pool", async () => {
  await shoal.addModel(LINE, { name: "brief", strangers: true });
  const page = await pageWith("brief");
  assert.equal((await run(page, "auto")).ran.where, "remote");
  await page.waitForFunction(() => model.isLoaded);
  // So that both are measured, and the pool is chosen at least once more.
  await shoal.unserve("brief");
  for (let at = 0; at < 4; at++) {
    const { outputs, ran } = await run(page, "auto");
    assert.deepEqual([outputs.y.data, ran.where], [Y, "local"]);
  }
  const gone = await run(page, "remote");
  assert.match(gone.message, /brief/);
});

test("auto stays with the pool when the page cannot run models", async () => {
  const broken = await startFront(coordinator, { file: (path) => (path.endsWith("/onnx_bg.wasm") ? Buffer.from("no module") : undefined) });
  try {
    const page = await pageWith("line", {}, broken);
    assert.equal((await run(page, "auto")).ran.where, "remote");
    await until("the page to give up", async () => /cannot run/.test((await run(page, "auto")).ran.why));
    const { outputs, ran } = await run(page, "auto");
    assert.deepEqual([outputs.y.data, ran.where], [Y, "remote"]);
    assert.match(ran.why, /this browser cannot run the model/);
    const local = await run(page, "local");
    assert.equal(local.code, "local_unable");
  } finally {
    await broken.close();
  }
});

test("a page adds a model, finds it in the list, and a budget that is too small is said", async () => {
  const page = await pageWith("line");
  const listed = await page.evaluate(async () => (await shoal.models()).map(({ name, size, inputs }) => ({ name, size, inputs })));
  assert.deepEqual(listed.find(({ name }) => name === "line"), { name: "line", size: LINE.length, inputs: [{ name: "x", datatype: "FP32", shape: [-1, 3] }] });
  const added = await page.evaluate(async (bytes) => {
    const file = new File([Uint8Array.from(bytes)], "my line.onnx");
    return (await shoal.addModel(file)).name;
  }, [...LINE]);
  assert.equal(added, "my-line");
  const short = await page.evaluate(() => told(() => model.run({ x: new Float32Array(3) }, { where: "local", budgetMs: 0 })));
  assert.equal(short.code, "deadline");
  const garbage = await page.evaluate(() => told(() => shoal.addModel(new Blob(["no model"]), { name: "garbage" })));
  assert.equal(garbage.code, "bad_model");
  await shoal.unserve("my-line");
});

test("the example of the documentation runs as it is printed, on a site of its own", async (t) => {
  const docs = await readFile(new URL("../../docs/models.md", import.meta.url), "utf8");
  const printed = /^```html\n([^]*?)^```/m.exec(docs)[1].replaceAll("http://127.0.0.1:7420", front.url);
  const site = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><script>const key = "${front.key}";</script><body>${printed}`);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  t.after(() => site.close());
  t.after(() => shoal.unserve("edges"));
  const edges = await readFile(new URL("../../examples/models/edges.onnx", import.meta.url));
  await shoal.addModel(edges, { name: "edges", strangers: true });
  const page = await openPage(context, `http://127.0.0.1:${site.address().port}/`);
  await page.getByText("1,1,64,64: remote, this page is still loading the model").waitFor({ timeout: 60_000 });
  // The page's own engine is started from the coordinator's address too.
  const where = await page.evaluate(
    async ({ url, key }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      const model = await (await connect(url, key)).model("edges", { where: "local" });
      return (await model.run({ image: { data: new Float32Array(48), shape: [1, 3, 4, 4] } })).ran.where;
    },
    { url: front.url, key: front.key },
  );
  assert.equal(where, "local");
});
