// Measures our side of `bench map`: the wave kernel over one large array, from submitting to the last byte stored.
//
//   node map.mjs URL KEY ITEMS RUNS [JOIN-LINK]      with a link, a Chromium tab joins first and does the work
//
// Prints one JSON object: seconds of the best run, and of fetching its result.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { Api } from "../lib/api.mjs";
import { KERNELS } from "../lib/places.mjs";
import { plainTab } from "./plain-tab.mjs";

const [url, key, items, runs, link] = process.argv.slice(2);
const api = new Api(url, key);
const close = link ? await plainTab(api, link) : undefined;

const input = Float32Array.from({ length: Number(items) }, (_, i) => (i * 1e-3) % 1000);
const started = performance.now();
const blob = await api.blob(new Uint8Array(input.buffer));
const upload = seconds(started);

const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");
const times = [];
const downloads = [];
for (let run = 0; run < Number(runs); run++) {
  const start = performance.now();
  const job = await api.json("POST", "/api/v1/jobs?wait=120", { kind: "map", wgsl, inputs: [{ blob }] });
  times.push(seconds(start));
  if (job.state !== "done") throw new Error(`the job ${job.state}: ${JSON.stringify(job.error)}`);
  const fetched = performance.now();
  check(new Float32Array(await api.result(job.id)));
  downloads.push(seconds(fetched));
  await api.ask("DELETE", `/api/v1/jobs/${job.id}`);
}
await close?.();
console.log(JSON.stringify({ seconds: Math.min(...times), upload, download: Math.min(...downloads) }));

function seconds(since) {
  return (performance.now() - since) / 1000;
}

/** A fast wrong answer is no answer. */
function check(output) {
  if (output.length !== input.length) throw new Error(`${output.length} numbers came back`);
  for (let i = 0; i < input.length; i += 1_000_003) {
    const wave = (length, height, phase) => height * Math.sin((input[i] * 6.2831853) / length + phase);
    const expected = wave(8, 1, 0) + wave(3.1, 0.4, 1.3) + wave(1.7, 0.2, 0.7) + wave(0.61, 0.05, 2.9);
    if (Math.abs(output[i] - expected) > 2e-3) throw new Error(`item ${i}: ${output[i]}, not ${expected}`);
  }
}
