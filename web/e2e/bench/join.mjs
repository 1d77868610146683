// Measures `bench join`: what a new tab fetches, and how long it takes, until its first unit is finished.
//
//   node join.mjs URL KEY JOIN-LINK RUNS
//
// A small map job waits; each run opens the link in a profile without a cache, through a proxy that counts
// every byte on the wire. Prints one JSON object.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { launch } from "../../tests/lib/chromium.mjs";
import { Api } from "../lib/api.mjs";
import { counted } from "../lib/counted.mjs";
import { KERNELS } from "../lib/places.mjs";
import { until } from "../lib/until.mjs";

const ITEMS = 1024;

const [url, key, link, runs] = process.argv.slice(2);
const api = new Api(url, key);
const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");
const blob = await api.blob(new Uint8Array(new Float32Array(ITEMS).buffer));

const { wire, through, close } = await counted(url);
const browser = await launch();
const found = [];
for (let run = 0; run < Number(runs); run++) found.push(await once());
await browser.close();
close();
const best = (pick) => Math.min(...found.map(pick));
console.log(JSON.stringify({ seconds: best((f) => f.seconds), bytes: best((f) => f.bytes), sent: best((f) => f.sent) }));

async function once() {
  const job = await api.submit({ kind: "map", wgsl, inputs: [{ blob }] });
  const context = await browser.newContext();
  const page = await context.newPage();
  Object.assign(wire, { down: 0, up: 0 });
  const start = performance.now();
  await page.goto(through(link), { waitUntil: "commit" });
  await page.getByRole("button", { name: "Lend this device" }).click();
  await until("the first unit", async () => (await api.job(job.id)).unitsDone > 0, 30);
  const figures = { seconds: (performance.now() - start) / 1000, bytes: wire.down, sent: wire.up };
  await context.close();
  await until("the tab to be gone", async () => (await api.nodes()).length === 0, 10);
  return figures;
}
