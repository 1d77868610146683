/** onnxruntime-web in tabs and pages: fetched only for a model, kept to only where it is faster, and never needed. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const EDGES = await readFile(new URL("../../examples/models/edges.onnx", import.meta.url));
const CIFAR = await readFile(new URL("../../examples/cifar10/cifar10.onnx", import.meta.url));
const FACE = await readFile(`${process.env.SHOAL_OUTSIDE}/blazeface/package/ONNX/face_detection_front_128x128_barracuda.onnx`).catch(() => undefined);

/** A picture so large that onnxruntime-web is the faster one by much, also on a busy machine. */
const SIDE = [1, 3, 384, 384];

let coordinator;
let front;
let browser;
let context;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  shoal = await connect(coordinator.url, coordinator.key);
});

beforeEach(async () => {
  await context?.close();
  await front?.close();
  for (const { name } of await shoal.models()) await remove(name);
  await until("the tab before to be gone", async () => (await shoal.nodes()).length === 0);
  front = await startFront(coordinator);
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 50))) {
    assert.ok(Date.now() - start < 90_000, `waited in vain for ${what}`);
  }
}

const remove = (name) =>
  fetch(`${coordinator.url}/api/v1/services/${name}`, { method: "DELETE", headers: { authorization: `Bearer ${coordinator.key}` } });

/** Files of onnxruntime-web that were asked for. */
const fetched = (place = front) => [...place.served].filter((path) => path.startsWith("/assets/ort"));

/** A page in which `model` is a model of the pool, run there. */
async function pageWith(name, file, place = front) {
  await shoal.addModel(file, { name });
  const page = await openPage(context, `${place.url}/join`);
  if (process.env.SHOAL_SHOW) page.on("console", (message) => console.log(message.text()));
  await page.evaluate(
    async ({ url, key, name }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      globalThis.model = await (await connect(url, key)).model(name, { where: "local" });
      globalThis.ask = async (input, shape) => {
        const numbers = shape.reduce((product, side) => product * side, 1);
        const data = Float32Array.from({ length: numbers }, (_, at) => ((at * 37) % 256) / 256);
        const { outputs, ran } = await globalThis.model.run({ [input]: { data, shape } });
        return { engine: ran.engine, outputs: Object.values(outputs).map(({ data, shape }) => ({ data: [...data], shape })) };
      };
    },
    { url: place.url, key: place.key, name },
  );
  return (input, shape) => page.evaluate(([input, shape]) => globalThis.ask(input, shape), [input, shape]);
}

function mustAgree(a, b) {
  assert.deepEqual(a.map(({ shape }) => shape), b.map(({ shape }) => shape));
  a.forEach(({ data }, at) => {
    const worst = data.reduce((worst, number, place) => Math.max(worst, Math.abs(number - b[at].data[place])), 0);
    assert.ok(worst <= 1e-4, `output ${at} differs by ${worst}`);
  });
}

/** Asks until onnxruntime-web answers; the first answer is the built-in engine's. */
async function untilSwitched(ask, input, shape) {
  const first = await ask(input, shape);
  assert.equal(first.engine, "rten");
  let last = first;
  await until("onnxruntime-web to answer", async () => (last = await ask(input, shape)).engine === "onnxruntime-web");
  return [first, last];
}

test("a page keeps to onnxruntime-web where it is faster, with the same numbers", async () => {
  const ask = await pageWith("edges", EDGES);
  assert.deepEqual(fetched(), []);
  const [first, last] = await untilSwitched(ask, "image", SIDE);
  mustAgree(first.outputs, last.outputs);
  // Another shape, by the same engine.
  assert.deepEqual((await ask("image", [1, 3, 20, 30])).outputs[0].shape, [1, 1, 20, 30]);
  assert.deepEqual(fetched().sort(), ["/assets/ort-worker.js", "/assets/ort.js", "/assets/ort.wasm"]);
});

test("a face detector gives the same numbers by both engines", { skip: !FACE && "the model is not here" }, async () => {
  const ask = await pageWith("face", FACE);
  const [first, last] = await untilSwitched(ask, "input:0", [1, 128, 128, 3]);
  mustAgree(first.outputs, last.outputs);
});

test("bad requests are refused alike by both", async () => {
  const ask = await pageWith("edges", EDGES);
  await untilSwitched(ask, "image", SIDE);
  await assert.rejects(ask("image", [1, 2, 8, 8]), /expected/);
  await assert.rejects(ask("picture", [1, 3, 8, 8]), /picture/);
  assert.equal((await ask("image", SIDE)).engine, "onnxruntime-web");
});

const BROKEN = {
  "is no module": (path, bytes) => (path === "/assets/ort.wasm" ? Buffer.from("no module") : bytes),
  "cannot be loaded": (path, bytes) => (path === "/assets/ort-worker.js" ? Buffer.from("throw new Error('no')") : bytes),
  "never answers": (path, bytes) => (path === "/assets/ort-worker.js" ? Buffer.from("addEventListener('message', () => 0)") : bytes),
};
for (const [what, file] of Object.entries(BROKEN)) {
  test(`the built-in engine answers if onnxruntime-web ${what}`, async () => {
    const place = await startFront(coordinator, { file });
    try {
      const ask = await pageWith("edges", EDGES, place);
      const first = await ask("image", [1, 3, 64, 64]);
      await until("it to be fetched", () => fetched(place).length > 0);
      for (let more = 0; more < 12; more++) {
        const answer = await ask("image", [1, 3, 64, 64]);
        assert.equal(answer.engine, "rten");
        assert.deepEqual(answer.outputs, first.outputs);
      }
    } finally {
      await place.close();
    }
  });
}

test("a run of onnxruntime-web that never ends holds nobody up", async () => {
  const hangs = `const tell = postMessage;
    globalThis.postMessage = (said, ...rest) => said.type === "ran" || tell(said, ...rest);\n`;
  const file = (path, bytes) => (path === "/assets/ort-worker.js" ? Buffer.concat([Buffer.from(hangs), bytes]) : bytes);
  const place = await startFront(coordinator, { file });
  try {
    const ask = await pageWith("edges", EDGES, place);
    await ask("image", SIDE);
    await until("it to be fetched", () => fetched(place).includes("/assets/ort.wasm"));
    const enough = Date.now() + 5_000;
    for (let asks = 0; asks < 5 || Date.now() < enough; asks++) {
      const began = Date.now();
      assert.equal((await ask("image", SIDE)).engine, "rten");
      assert.ok(Date.now() - began < 5_000, `an answer took ${Date.now() - began} ms`);
    }
  } finally {
    await place.close();
  }
});

test("if onnxruntime-web ends while it is kept to, the built-in engine answers at once", async () => {
  // A Worker that ends itself after some answers.
  const dies = `const tell = postMessage; let ran = 0;
    globalThis.postMessage = (said, ...rest) => {
      if (said.type === "ran" && ++ran > 20) { setTimeout(() => { throw new Error("it ends"); }); return; }
      tell(said, ...rest);
    };\n`;
  const file = (path, bytes) => (path === "/assets/ort-worker.js" ? Buffer.concat([Buffer.from(dies), bytes]) : bytes);
  const place = await startFront(coordinator, { file });
  try {
    const ask = await pageWith("edges", EDGES, place);
    const [first] = await untilSwitched(ask, "image", SIDE);
    const engines = new Set();
    for (let more = 0; more < 30; more++) {
      const answer = await ask("image", SIDE);
      engines.add(answer.engine);
      mustAgree(first.outputs, answer.outputs);
    }
    assert.deepEqual([...engines].sort(), ["onnxruntime-web", "rten"]);
  } finally {
    await place.close();
  }
});

test("a tab names it among its engines when it has it, and runs jobs with it", async () => {
  const engines = async () => (await shoal.nodes())[0]?.engines.map(({ name }) => name) ?? [];
  const tab = await joinTab(context, front);
  const said = [];
  tab.page.on("console", (message) => said.push(message.text()));
  await tab.joined();
  await until("models to be offered", async () => (await engines()).includes("onnx"));
  assert.deepEqual(fetched(), []);
  assert.ok(!(await engines()).includes("onnxruntime-web"));
  await shoal.addModel(CIFAR, { name: "cifar", strangers: true });
  const model = await shoal.model("cifar", { where: "remote" });
  const [{ name, shape }] = model.inputs;
  const side = shape.map((side) => Math.max(1, side));
  const pixels = Float32Array.from({ length: side.reduce((a, b) => a * b, 1) }, (_, at) => (at % 17) / 17);
  const ask = async () => (await model.run({ [name]: { data: pixels, shape: side } })).outputs;
  const first = Object.values(await ask());
  await until("it to be named", async () => (await engines()).includes("onnxruntime-web"));
  await until("an engine to be chosen", async () => {
    mustAgree(first, Object.values(await ask()));
    return said.some((line) => line.includes("answers from now on"));
  });
  mustAgree(first, Object.values(await ask()));
  await remove("cifar");
  await until("it to be gone with the model", async () => !(await engines()).includes("onnxruntime-web"));
});

for (const [what, kind, threads] of [
  ["the file for GPUs runs a model too", "ort-webgpu", 1],
  ["two threads run a model", "ort", 2],
]) test(`${what}, under the pages' policy`, async () => {
  const page = await openPage(context, `${front.url}/join`);
  const found = await page.evaluate(
    async ({ assets, file, kind, threads }) => {
      const worker = new Worker(`${assets}/${kind}-worker.js`, { type: "module" });
      const heard = new Promise((resolve, reject) => {
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
      });
      worker.postMessage({ type: "open", glue: `${assets}/${kind}.js`, wasm: `${assets}/${kind}.wasm`, threads });
      worker.postMessage({ type: "load", model: 1, file: new Uint8Array(file) });
      return heard.finally(() => worker.terminate());
    },
    { assets: `${front.url}/assets`, file: [...EDGES], kind, threads },
  );
  assert.equal(found.type, "loaded", JSON.stringify(found));
});
