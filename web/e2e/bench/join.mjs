// Measures `bench join`: what a new tab fetches, and how long it takes, until its first unit is finished.
//
//   node join.mjs URL KEY JOIN-LINK RUNS
//
// A small map job waits; each run opens the link in a profile without a cache, through a proxy that counts
// every byte on the wire. Prints one JSON object.

import { readFileSync } from "node:fs";
import { createServer, connect } from "node:net";
import { join } from "node:path";

import { launch } from "../../tests/lib/chromium.mjs";
import { Api } from "../lib/api.mjs";
import { KERNELS } from "../lib/places.mjs";
import { until } from "../lib/until.mjs";

const ITEMS = 1024;

const [url, key, link, runs] = process.argv.slice(2);
const api = new Api(url, key);
const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");
const blob = await api.blob(new Uint8Array(new Float32Array(ITEMS).buffer));

const wire = { down: 0, up: 0 };
const proxy = createServer((client) => {
  const server = connect(Number(new URL(url).port), "127.0.0.1");
  client.on("data", (bytes) => (wire.up += bytes.length)).pipe(server);
  server.on("data", (bytes) => (wire.down += bytes.length)).pipe(client);
  for (const socket of [client, server]) socket.on("error", () => (client.destroy(), server.destroy()));
});
await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const through = new URL(link);
through.port = proxy.address().port;

const browser = await launch();
const found = [];
for (let run = 0; run < Number(runs); run++) found.push(await once());
await browser.close();
proxy.close();
const best = (pick) => Math.min(...found.map(pick));
console.log(JSON.stringify({ seconds: best((f) => f.seconds), bytes: best((f) => f.bytes), sent: best((f) => f.sent) }));

async function once() {
  const job = await api.submit({ kind: "map", wgsl, inputs: [{ blob }] });
  const context = await browser.newContext();
  const page = await context.newPage();
  Object.assign(wire, { down: 0, up: 0 });
  const start = performance.now();
  await page.goto(through.href, { waitUntil: "commit" });
  await page.getByRole("button", { name: "Lend this device" }).click();
  await until("the first unit", async () => (await api.job(job.id)).unitsDone > 0, 30);
  const figures = { seconds: (performance.now() - start) / 1000, bytes: wire.down, sent: wire.up };
  await context.close();
  await until("the tab to be gone", async () => (await api.nodes()).length === 0, 10);
  return figures;
}
