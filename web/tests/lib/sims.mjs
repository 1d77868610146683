/** A Chromium page whose GPU Worker computes bands of simulations as a test asks, without a coordinator. */

import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { blake3 } from "./blake3.mjs";
import { launch, openPage } from "./chromium.mjs";
import { send, startPool } from "./pool.mjs";

export async function openSims() {
  const blobs = {};
  const views = [];
  const entryPoints = [fileURLToPath(new URL("sim-harness.ts", import.meta.url))];
  const [harness] = (await build({ entryPoints, bundle: true, format: "esm", target: "es2022", write: false }))
    .outputFiles;
  const keep = (_request, response, body) => {
    const hash = blake3(body);
    blobs[hash] = body;
    send(response, 200, "application/json", JSON.stringify({ hash, size: body.length }));
  };
  const view = (request, response, body) => {
    views.push({ query: Object.fromEntries(new URL(request.url, "http://pool").searchParams), body });
    send(response, 204, "text/plain", "");
  };
  // Crews are numbered from one.
  const crews = [1, 2, 3, 4];
  const routes = {
    "GET /harness.js": (_request, response) => send(response, 200, "text/javascript", harness.text),
    ...Object.fromEntries(crews.map((crew) => [`PUT /node/kept/${crew}/1`, keep])),
    ...Object.fromEntries(crews.map((crew) => [`PUT /node/view/${crew}`, view])),
  };
  const pool = await startPool({ blobs, routes });
  const browser = await launch();
  const page = await openPage(browser, `${pool.url}/blank`);
  await page.evaluate(async (url) => {
    const { open } = await import(`${url}/harness.js`);
    globalThis.run = await open(url);
  }, pool.url);
  return {
    blobs,
    /** Pictures that came, `{query, body}`. */
    views,
    /** `{field, kept, audition}`: all rows after the last step; or `{failure}`. `work`: the protocol's bytes of it; `first`: the first
     * state's. */
    async run({ work, width, height, first }, plan) {
      const limits = { time: 30_000, memory: 2 ** 28, output: 2 ** 24 };
      const stored = first && { hash: blake3(first), size: first.length };
      if (stored) blobs[stored.hash] = first;
      const sim = { kind: "sim", bytes: [...work], width, height, ...(stored ? { first: stored } : {}) };
      const info = { name: "test", owner: "test", items: height, limits, work: sim };
      const { finals, ...rest } = await page.evaluate(
        ({ info, plan }) => {
          info.work.bytes = new Uint8Array(info.work.bytes);
          return globalThis.run(info, plan);
        },
        { info, plan },
      );
      if (!finals) return rest;
      const rows = finals.map(({ inline }, at) => (inline ? Buffer.from(inline) : pool.results.get(`1/${at + 1}`)));
      return { field: Buffer.concat(rows), ...rest };
    },
    async close() {
      await browser.close();
      await pool.close();
    },
  };
}

/** Rows cut in `count` bands. */
export function cut(height, count) {
  const at = (number) => Math.floor((height * number) / count);
  return Array.from({ length: count }, (_, number) => ({ start: at(number), len: at(number + 1) - at(number) }));
}
