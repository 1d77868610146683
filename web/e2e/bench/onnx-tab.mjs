// Measures `bench onnx` in a browser: a model in a page through Shoal, in turns with onnxruntime-web by hand in another page of
// the same Chromium, one thread on both sides.
//
//   node onnx-tab.mjs URL KEY NAME FILE SIDE RUNS
//
// SIDE is the pictures' height and width where the model leaves them open. Prints one JSON object: median
// milliseconds of both and of the built-in engine, and the largest difference of the answers.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

import { launchPlain } from "../../tests/lib/plain.mjs";
import { Api } from "../lib/api.mjs";

/** Runs of one side before it is the other's turn. */
const IN_A_ROW = 5;
/** In this time a page has loaded onnxruntime-web and knows which engine is faster. */
const TRIAL_MILLIS = 20_000;
const PACKAGE = new URL("../../node_modules/onnxruntime-web/dist/", import.meta.url);
const TYPES = { ".mjs": "text/javascript", ".wasm": "application/wasm" };

const [url, key, name, path, side, runs] = process.argv.slice(2);
const file = await readFile(path);
const model = await new Api(url, key).blob(file);
const headers = { authorization: `Bearer ${key}` };
await fetch(`${url}/api/v1/services`, { method: "POST", headers, body: JSON.stringify({ kind: "onnx", name, model }) });

const isolated = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
const server = createServer(async ({ url }, response) => {
  if (url === "/") return response.writeHead(200, { ...isolated, "content-type": "text/html" }).end("<!doctype html>");
  const bytes = url === "/model" ? file : await readFile(new URL(`.${url}`, PACKAGE)).catch(() => undefined);
  response.writeHead(bytes ? 200 : 404, { ...isolated, "content-type": TYPES[extname(url)] ?? "application/octet-stream" }).end(bytes);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await launchPlain();
try {
  const ours = await browser.open(`${url}/join`);
  await ours.waitFor(() => document.readyState === "complete");
  const { input, shape, builtIn } = await ours.evaluate(openOurs, { url, key, name, side: Number(side), trialMillis: TRIAL_MILLIS });
  const hand = await browser.open(`http://127.0.0.1:${server.address().port}/`);
  await hand.waitFor(() => document.readyState === "complete");
  await hand.evaluate(openByHand, { input, shape });
  const times = { ours: [], hand: [] };
  for (let ran = 0; ran < Number(runs); ran += IN_A_ROW) {
    for (const [side, page] of [["hand", hand], ["ours", ours]]) {
      await page.show();
      times[side].push(...(await page.evaluate((times) => globalThis.runs(times), IN_A_ROW)));
    }
  }
  const last = () => globalThis.sums;
  const [a, b] = [await ours.evaluate(last), await hand.evaluate(last)];
  const difference = Math.max(...a.map((number, at) => Math.abs(number - b[at])));
  console.log(JSON.stringify({ ours: median(times.ours), hand: median(times.hand), builtIn, difference }));
} finally {
  await browser.close();
  server.close();
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** Runs in a page: asks until onnxruntime-web answers, or for so long that it was tried and is not the faster one. */
async function openOurs({ url, key, name, side, trialMillis }) {
  const { connect } = await import(`${url}/assets/sdk.js`);
  const model = await (await connect(url, key)).model(name, { where: "local" });
  const [{ name: input, shape: declared }] = model.inputs;
  // One picture, as large as it is said.
  const opened = (at) => (at ? side : 1);
  const shape = declared.map((known, at) => (known > 0 ? known : opened(at)));
  const numbers = shape.reduce((product, side) => product * side, 1);
  const data = Float32Array.from({ length: numbers }, (_, at) => ((at * 37) % 256) / 256);
  const run = async () => {
    const began = performance.now();
    const { outputs, ran } = await model.run({ [input]: { data, shape } });
    const took = performance.now() - began;
    globalThis.sums = [...Object.values(outputs)[0].data.slice(0, 1000)];
    return { took, engine: ran.engine };
  };
  globalThis.runs = async (times) => {
    const took = [];
    while (took.length < times) {
      took.push((await run()).took);
    }
    return took;
  };
  const builtIn = [];
  for (const until = performance.now() + trialMillis; performance.now() < until; ) {
    const { took, engine } = await run();
    if (engine !== "rten") break;
    builtIn.push(took);
  }
  return { input, shape, builtIn: Math.min(...builtIn) };
}

/** Runs in a page: as the package's own documentation does it. */
async function openByHand({ input, shape }) {
  const ort = await import(`${location.origin}/ort.wasm.min.mjs`);
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = `${location.origin}/`;
  const file = new Uint8Array(await (await fetch("/model")).arrayBuffer());
  const session = await ort.InferenceSession.create(file, { executionProviders: ["wasm"] });
  const numbers = shape.reduce((product, side) => product * side, 1);
  const data = Float32Array.from({ length: numbers }, (_, at) => ((at * 37) % 256) / 256);
  globalThis.runs = async (times) => {
    const took = [];
    while (took.length < times) {
      const began = performance.now();
      const outputs = await session.run({ [input]: new ort.Tensor("float32", data, shape) });
      took.push(performance.now() - began);
      globalThis.sums = [...outputs[session.outputNames[0]].data.slice(0, 1000)];
    }
    return took;
  };
  await globalThis.runs(10);
}
