/** The GPU Worker alone: fetches its part, computes, answers inline or by HTTP. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blake3 } from "./lib/blake3.mjs";
import { launch, openPage } from "./lib/chromium.mjs";
import { startPool } from "./lib/pool.mjs";
import { encodeWork } from "./lib/postcard.mjs";

const WAVE = `
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= arrayLength(&output)) { return; }
  output[id.x] = input[id.x] * 2.0 + 1.0;
}`;
const ITEMS = 1 << 20;
const INPUT = Buffer.from(new Float32Array(ITEMS).map((_, i) => i).buffer);
const HASH = blake3(INPUT);
const OTHER = "ab".repeat(32);
const SIZE = ITEMS * 4;

let pool;
let browser;
let page;

before(async () => {
  pool = await startPool({ blobs: { [HASH]: INPUT, [OTHER]: INPUT } });
  browser = await launch();
  page = await openPage(browser, `${pool.url}/blank`);
});

after(async () => {
  await browser?.close();
  await pool?.close();
});

function jobOf(wgsl, hash = HASH) {
  const bindings = [
    { index: 0, space: "StorageRead", slot: { Input: 0 } },
    { index: 1, space: "StorageReadWrite", slot: "Output" },
  ];
  const kernel = { source: wgsl, entry: "main", workgroup: [64, 1, 1], bindings, params: null };
  const inputs = [
    { blob: { hash: [...Buffer.from(hash, "hex")], size: SIZE }, split: { PerItem: { bytes: 4, reach: 0 } } },
  ];
  const bytes = encodeWork({ Map: { kernel, inputs, output_bytes: 4 } });
  return {
    name: "wave",
    owner: "test",
    items: ITEMS,
    limits: { time: 30000, memory: 1 << 28, output: 1 << 24 },
    work: { kind: "map", bytes: [...bytes], inputs: [{ blob: { hash, size: SIZE }, perItem: 4 }] },
  };
}

/** Runs units in a GPU Worker of the page; answers with what it said, without clocks. */
function runUnits(info, units) {
  return page.evaluate(
    async ({ url, info, units }) => {
      info.work.bytes = new Uint8Array(info.work.bytes);
      const worker = new Worker(`${url}/assets/gpu-worker.js`, { type: "module" });
      const wasm = `${url}/assets/gpu_bg.wasm`;
      const hashing = await WebAssembly.compileStreaming(fetch(`${url}/assets/brain_bg.wasm`));
      worker.postMessage({ type: "open", base: url, wasm, hashing, session: "s" });
      worker.postMessage({ type: "job", job: 1, info });
      const answers = await new Promise((resolve, reject) => {
        const said = [];
        worker.onerror = (event) => reject(new Error(event.message));
        worker.onmessage = ({ data }) => {
          if (data.type !== "done" && data.type !== "failed") return;
          if (data.result?.inline) data.result.inline = [...new Float32Array(data.result.inline.buffer)];
          said.push(data);
          if (said.length === units.length) resolve(said);
        };
        for (const unit of units) worker.postMessage({ type: "run", unit: { job: 1, ...unit } });
      });
      worker.terminate();
      return answers;
    },
    { url: pool.url, info, units },
  );
}

test("a small unit's result rides along", async () => {
  const [done] = await runUnits(jobOf(WAVE), [{ attempt: 7, start: 1000, len: 100 }]);
  assert.equal(done.type, "done");
  assert.equal(done.attempt, 7);
  assert.deepEqual(done.result.inline, Array.from({ length: 100 }, (_, i) => (1000 + i) * 2 + 1));
});

test("a large unit's result is stored", async () => {
  const units = [
    { attempt: 8, start: 0, len: ITEMS / 2 },
    { attempt: 9, start: ITEMS / 2, len: ITEMS / 2 },
  ];
  const done = await runUnits(jobOf(WAVE), units);
  assert.deepEqual(done.map((each) => each.result.size), [ITEMS * 2, ITEMS * 2]);
  const stored = pool.results.get("1/9");
  assert.equal(stored.readFloatLE(0), ITEMS + 1);
  assert.equal(stored.readFloatLE(stored.length - 4), (ITEMS - 1) * 2 + 1);
});

test("other bytes than the blob's are not computed with", async () => {
  const [failed] = await runUnits(jobOf(WAVE, OTHER), [{ attempt: 2, start: 0, len: 64 }]);
  assert.equal(failed.failure?.kind, "fetch");
  assert.match(failed.failure.message, new RegExp(`other bytes came, of hash ${HASH}`));
});

test("a kernel the browser refuses fails with its compiler's words", async () => {
  const [failed] = await runUnits(jobOf(WAVE.replace("2.0", "two")), [{ attempt: 1, start: 0, len: 64 }]);
  assert.equal(failed.type, "failed");
  assert.equal(failed.failure.kind, "kernel");
  assert.match(failed.failure.message, /two/);
});
