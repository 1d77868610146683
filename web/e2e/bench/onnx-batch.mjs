// Measures our side of `bench onnx-batch`: a classifier over the test pictures of CIFAR-10, from submitting to the last row
// stored.
//
//   node onnx-batch.mjs URL KEY PICTURES RUNS [JOIN-LINK]     with a link, a Chromium tab joins first
//
// Prints one JSON object: pictures per second of the best run, and how many nodes had a part in it.

import { readFileSync } from "node:fs";

import { Api } from "../lib/api.mjs";
import { cifar10, classes, MODEL, PICTURE_BYTES } from "../lib/cifar10.mjs";
import { plainTab } from "./plain-tab.mjs";

/** The part that the model tells rightly, less than what chance could take away from 2,000 pictures. */
const RIGHT = 0.85;

const [url, key, pictures, runs, link] = process.argv.slice(2);
const count = Number(pictures);
const api = new Api(url, key);
const close = link ? await plainTab(api, link) : undefined;
const { pixels, labels } = cifar10();
const blob = await api.blob(pixels.subarray(0, count * PICTURE_BYTES));
const model = await api.blob(readFileSync(MODEL));
const inputs = [{ blob, type: "uint8", shape: [count, 32, 32, 3] }];

let best = { seconds: Infinity, nodes: 0 };
// The first run also loads the model.
for (let run = 0; run <= Number(runs); run++) {
  const started = performance.now();
  const { id } = await api.submit({ kind: "onnx", model, inputs, verify: "none" });
  const job = await api.json("GET", `/api/v1/jobs/${id}?wait=300`);
  const seconds = (performance.now() - started) / 1000;
  if (job.state !== "done") throw new Error(`the job ${job.state}: ${JSON.stringify(job.error)}`);
  // A fast wrong answer is no answer.
  const right = classes(await api.result(id)).filter((one, at) => one === labels[at]).length;
  if (right < RIGHT * count) throw new Error(`only ${right} of ${count} are right`);
  if (run > 0 && seconds < best.seconds) best = { seconds, nodes: job.shares.length };
  await api.ask("DELETE", `/api/v1/jobs/${id}`);
}
await close?.();
console.log(JSON.stringify({ perSecond: count / best.seconds, nodes: best.nodes }));
