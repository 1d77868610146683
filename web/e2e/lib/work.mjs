// Jobs big enough that several devices get a part, and what must come out of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { KERNELS, PROGRAMS } from "./places.mjs";

/** A kernel with real work for each item, stepped as often as the job says. */
export const MIX = `
struct Params { steps: u32 }
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&output)) { return; }
    var x = input[id.x];
    for (var i = 0u; i < params.steps; i++) {
        x = x * 1664525u + 1013904223u;
        x ^= x >> 15u;
    }
    output[id.x] = x;
}`;

/** Integers, so that every device must agree to the bit. */
export async function mapJob(api, { items = 1 << 20, steps = 2000, unit = 1 << 14, ...rest } = {}) {
  const input = Uint32Array.from({ length: items }, (_, i) => i * 7 + 1);
  const blob = await api.blob(Buffer.from(input.buffer));
  const job = await api.submit({
    kind: "map",
    wgsl: MIX,
    inputs: [{ blob }],
    params: { steps },
    unit,
    ...rest,
  });
  const check = (bytes) => {
    const output = new Uint32Array(bytes);
    assert.equal(output.length, items);
    // Every part of the array, not every element: the reference is JavaScript.
    for (let i = 0; i < items; i += 997) assert.equal(output[i], mixed(input[i], steps), `item ${i}`);
    assert.equal(output[items - 1], mixed(input[items - 1], steps), "the last item");
  };
  return { ...job, check };
}

export function mixed(x, steps) {
  for (let i = 0; i < steps; i++) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    x = (x ^ (x >>> 15)) >>> 0;
  }
  return x;
}

export function renderJob(api, { width = 512, height = 320, samples = 24, tile = 32, ...rest } = {}) {
  const wgsl = readFileSync(join(KERNELS, "path.wgsl"), "utf8");
  return api.submit({ kind: "render", wgsl, width, height, samples, tile, unit: 1, ...rest });
}

/** GPUs may round differently, and a path tracer magnifies it: pictures must look alike, not be alike. */
export function assertAlike(first, second) {
  const [a, b] = [new Uint8Array(first), new Uint8Array(second)];
  assert.equal(a.length, b.length);
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
  const mean = sum / a.length;
  assert.ok(mean < 2, `the pictures differ by ${mean.toFixed(2)} of 255 on average`);
  assert.ok(a.some((value) => value > 0), "the picture is empty");
}

/** One prime count per line, each run long enough to be worth a lease. */
export async function execJob(api, { lines = 400, least = 2_000_000, ...rest } = {}) {
  const limits = Array.from({ length: lines }, (_, i) => least + i * 97);
  const module = await api.blob(readFileSync(join(PROGRAMS, "primes.wasm")));
  const blob = await api.blob(limits.map((limit) => `${limit}\n`).join(""));
  const job = await api.submit({ kind: "exec", module, lines: { blob }, unit: 2, ...rest });
  const check = (bytes) => {
    const answers = Buffer.from(bytes).toString("utf8").trimEnd().split("\n").map(Number);
    assert.deepEqual(answers, primeCounts(limits));
  };
  return { ...job, check };
}

/** How many primes there are up to each limit; limits ascend. */
export function primeCounts(limits) {
  const most = limits.at(-1);
  const composite = new Uint8Array(most + 1);
  const counts = [];
  let [count, next] = [0, 0];
  for (let n = 2; n <= most; n++) {
    while (next < limits.length && limits[next] < n) {
      counts.push(count);
      next++;
    }
    if (composite[n]) continue;
    count++;
    for (let m = n * n; m <= most; m += n) composite[m] = 1;
  }
  while (counts.length < limits.length) counts.push(count);
  return counts;
}

/** Each of these nodes did some of it, and all together did all of it once. */
export function assertShared(job, nodes) {
  const shares = new Map(job.shares.map((share) => [share.node, share.items]));
  for (const node of nodes) {
    assert.ok(shares.get(node.id) > 0, `${node.name} did nothing: ${JSON.stringify(job.shares)}`);
  }
  assertWhole(job);
}

/** No item is lost and none is merged twice. */
export function assertWhole(job) {
  assert.equal(job.itemsDone, job.items);
  const sum = job.shares.reduce((sum, share) => sum + share.items, 0);
  assert.equal(sum, job.items, JSON.stringify(job.shares));
}
