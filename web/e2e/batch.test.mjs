// A classifier over many pictures: tabs and machines together, some of which are lost on the way.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { cifar10, classes, COUNT, FOLDER, MODEL, PICTURE_BYTES, RIGHT } from "./lib/cifar10.mjs";
import { folder } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";

/** A machine of the operator's own: what strangers answer is held against it. */
const OWN = (pool) => ["--no-gpu", "--cpus", "1", "--key", pool.key];
const skip = FOLDER === undefined && "cargo xtask test fetches the pictures";

async function classify(api, pixels, more = {}) {
  const shape = [pixels.length / PICTURE_BYTES, 32, 32, 3];
  const [model, blob] = await Promise.all([api.blob(readFileSync(MODEL)), api.blob(pixels)]);
  return api.submit({ kind: "onnx", model, inputs: [{ blob, type: "uint8", shape }], ...more });
}

/** Pictures that one process tells in the run, beside all of them once for `RIGHT`. */
const ALONE = 1000;

it("all pictures of CIFAR-10 are told as in one process, by two tabs and a machine", { skip }, async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"), OWN(pool));
  const { pixels, labels } = cifar10();
  const alone = await classify(pool.api, pixels.subarray(0, ALONE * PICTURE_BYTES));
  await pool.api.done(alone.id, 400);
  const tabs = await browser(t);
  const donors = [await tab(tabs, pool), await tab(tabs, pool)];
  const { id } = await classify(pool.api, pixels);
  const job = await pool.api.done(id, 400);
  assert.deepEqual(job.tensors, [{ name: "logits", type: "float32", shape: [10] }]);
  const told = classes(await pool.api.result(id));
  assert.equal(told.length, COUNT);
  assert.equal(told.filter((one, at) => one === labels[at]).length, RIGHT);
  assert.deepEqual(told.slice(0, ALONE), classes(await pool.api.result(alone.id)));
  const shares = Object.fromEntries(job.shares.map((share) => [share.node, share.items]));
  for (const { node: { id: node } } of [machine, ...donors]) {
    assert.ok(shares[node] > 0, `node ${node} did nothing: ${JSON.stringify(shares)}`);
  }
  const array = Buffer.from(await (await pool.api.ask("GET", `/api/v1/jobs/${id}/result.npy`)).arrayBuffer());
  assert.match(array.toString("latin1", 10, 128), /'descr': '<f4'.*'shape': \(10000, 10\)/);
});

it("a machine and a tab that are lost change no answer", { skip }, async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const tabs = await browser(t);
  const [first, donor] = [await native(t, pool, join(data, "first"), OWN(pool)), await tab(tabs, pool)];
  const { pixels, labels } = cifar10();
  const some = 1500;
  const { id } = await classify(pool.api, pixels.subarray(0, some * PICTURE_BYTES), { unit: 16 });
  await pool.api.underWay(id, 0.1);
  await kill(first.child);
  const second = await native(t, pool, join(data, "second"), OWN(pool));
  await pool.api.underWay(id, 0.4);
  await donor.page.close();
  const job = await pool.api.done(id, 400);
  const told = classes(await pool.api.result(id));
  // Of one process: what the first pictures are told as when nobody is lost.
  const alone = await classify(pool.api, pixels.subarray(0, some * PICTURE_BYTES));
  await pool.api.done(alone.id, 400);
  assert.deepEqual(told, classes(await pool.api.result(alone.id)));
  assert.ok(told.filter((one, at) => one === labels[at]).length > 0.85 * some);
  assert.ok(job.shares.some((share) => share.node === second.node.id));
});
