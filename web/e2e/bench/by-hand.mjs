// The peer of our tab in `bench map`: the same kernel over the same array, written by hand in a page.
//
//   node by-hand.mjs ITEMS RUNS
//
// Array to array in the page's memory, buffers made once, two pieces in flight. Prints one JSON object.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { launch, openPage } from "../../tests/lib/chromium.mjs";
import { KERNELS } from "../lib/places.mjs";

const [items, runs] = process.argv.slice(2).map(Number);
const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");

// WebGPU needs a secure page, which this machine's own address is.
const server = createServer((_, response) => response.end("<!doctype html>")).listen(0, "127.0.0.1");
const browser = await launch();
const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
const seconds = await page.evaluate(byHand, { wgsl, items, runs });
await browser.close();
server.close();
console.log(JSON.stringify({ seconds: Math.min(...seconds) }));

async function byHand({ wgsl, items, runs }) {
  const PIECE = 65_535 * 64;
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice();
  const module = device.createShaderModule({ code: wgsl });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
  const buffer = (usage) => device.createBuffer({ size: PIECE * 4, usage });
  const slots = [0, 1].map(() => ({
    input: buffer(STORAGE | COPY_DST),
    output: buffer(STORAGE | COPY_SRC),
    readback: buffer(MAP_READ | COPY_DST),
    ready: undefined,
  }));
  const input = Float32Array.from({ length: items }, (_, i) => (i * 1e-3) % 1000);
  const output = new Float32Array(items);

  const start = (slot, first, count) => {
    device.queue.writeBuffer(slot.input, 0, input, first, count);
    const bind = (binding, buffer) => ({ binding, resource: { buffer, size: count * 4 } });
    const entries = [bind(0, slot.input), bind(1, slot.output)];
    const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(Math.ceil(count / 64));
    pass.end();
    encoder.copyBufferToBuffer(slot.output, 0, slot.readback, 0, count * 4);
    device.queue.submit([encoder.finish()]);
    const mapped = slot.readback.mapAsync(GPUMapMode.READ, 0, count * 4);
    slot.ready = mapped.then(() => {
      output.set(new Float32Array(slot.readback.getMappedRange(0, count * 4)), first);
      slot.readback.unmap();
    });
  };

  const times = [];
  for (let run = 0; run < runs; run++) {
    const began = performance.now();
    for (let first = 0, turn = 0; first < items; first += PIECE, turn ^= 1) {
      await slots[turn].ready;
      start(slots[turn], first, Math.min(PIECE, items - first));
    }
    await Promise.all(slots.map((slot) => slot.ready));
    times.push((performance.now() - began) / 1000);
  }
  return times;
}
