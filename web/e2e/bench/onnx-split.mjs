// Measures `bench onnx-split`: the CIFAR-10 classifier in three tabs, beside the whole of it in one of them.
//
//   node onnx-split.mjs URL KEY direct|relay
//
// Prints one JSON object: medians of a request's milliseconds in slices and whole, asked in turn; requests a second with several
// under way; and what each slice computes, in milliseconds. With `relay` no tab has a radio, so that all goes through the
// coordinator.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { launch } from "../../tests/lib/chromium.mjs";
import { Api } from "../lib/api.mjs";
import { ROOT } from "../lib/places.mjs";
import { until } from "../lib/until.mjs";

const [url, key, way] = process.argv.slice(2);
const TURNS = 60;
const STREAM = 240;
/** Two for each slice. */
const AT_ONCE = 6;
const HEAD = { inputs: [{ name: "image", shape: [1, 3, 32, 32], datatype: "FP32", parameters: { binary_data_size: 12_288 } }], parameters: { binary_data_output: true } };

const api = new Api(url, key);
const head = Buffer.from(JSON.stringify(HEAD));
const body = Buffer.concat([head, Buffer.from(Float32Array.from({ length: 3072 }, (_, at) => (at % 256) / 255).buffer)]);
const headers = { "inference-header-content-length": String(head.length), "content-type": "application/octet-stream" };

async function ask(name) {
  const began = performance.now();
  await (await api.ask("POST", `/v2/models/${name}/infer`, body, headers)).arrayBuffer();
  return performance.now() - began;
}

async function stream(name) {
  let left = STREAM;
  const began = performance.now();
  const one = async () => {
    while (left-- > 0) await ask(name);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return (STREAM * 1000) / (performance.now() - began);
}

async function crew() {
  const { services } = await api.json("GET", "/api/v1/services");
  return services.find(({ name }) => name === "classifier")?.crew;
}

function median(list) {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
}

const browser = await launch();
try {
  for (let at = 0; at < 3; at++) {
    const context = await browser.newContext();
    if (way === "relay") await context.addInitScript(() => delete globalThis.RTCPeerConnection);
    const page = await context.newPage();
    await page.goto(`${url}/classify#key=${key}`);
    await page.getByRole("button", { name: "Lend this tab" }).click();
    await page.getByRole("button", { name: "Stop lending this tab" }).waitFor();
  }
  await until("three slices", async () => (await crew())?.ready && (await crew()).stages.length === 3, 120);
  const model = await api.blob(readFileSync(join(ROOT, "examples/cifar10/cifar10.onnx")));
  await api.json("POST", "/api/v1/services", { kind: "onnx", name: "whole", model, least: 1, most: 1 });
  await until(`slices that are linked by ${way}`, async () => {
    await ask("classifier");
    await ask("whole");
    return (await crew()).stages.slice(0, 2).every(({ via }) => via === way);
  }, 60);
  const [sliced, whole] = [[], []];
  for (let at = 0; at < TURNS; at++) {
    sliced.push(await ask("classifier"));
    whole.push(await ask("whole"));
  }
  const rate = await stream("classifier");
  const { stages } = await crew();
  const computes = stages.map(({ computeMs }) => computeMs);
  const travels = stages.slice(0, 2).map(({ travelMs }) => travelMs);
  console.log(JSON.stringify({ sliced: median(sliced), whole: median(whole), rate, slowest: Math.max(...computes), computes, travels }));
} finally {
  await browser.close();
}
