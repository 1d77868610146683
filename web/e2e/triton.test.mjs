// A client of Triton, unchanged, against a model of this pool.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";

import { onnxFile } from "../tests/lib/onnx-file.mjs";
import { folder, ROOT } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";

const run = promisify(execFile);
const PYTHON = process.env.SHOAL_CLIENTS;

/** `y = |max(x, 0) - x|`: negative numbers come back positive, others as 0. */
const MODEL = onnxFile({
  nodes: [["Relu", ["x"], "r"], ["Sub", ["r", "x"], "d"], ["Abs", ["d"], "y"]],
  inputs: { x: ["n", 3] },
  outputs: { y: ["n", 3] },
});

it("tritonclient works unchanged", { skip: PYTHON === undefined && "cargo xtask test names its Python" }, async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  await native(t, pool, join(data, "node"), ["--no-gpu"]);
  const model = await pool.api.blob(MODEL);
  await pool.api.json("POST", "/api/v1/services", { name: "part", kind: "onnx", model, strangers: true });
  const script = join(ROOT, "web/e2e/lib/triton.py");
  const { stdout } = await run(PYTHON, [script, new URL(pool.url).host, pool.key, "part"]);
  const got = JSON.parse(stdout);
  assert.deepEqual([got.live, got.ready, got.modelReady, got.versionReady], [true, true, true, true]);
  assert.equal(got.server.name, "shoal");
  assert.deepEqual(got.server.extensions, ["binary_tensor_data"]);
  assert.deepEqual(got.model.inputs, [{ name: "x", datatype: "FP32", shape: [-1, 3] }]);
  const right = [[0, 2, 0], [3, 0, 0.25]];
  assert.deepEqual(got.answers, [right, right, right, right]);
  assert.deepEqual(got.alone, right);
  assert.deepEqual([got.version.id, got.version.model_version], ["7", "1"]);
  assert.deepEqual(got.together, Array.from({ length: 20 }, (_, i) => [[i, 0, 0]]));
  assert.equal(got.large, 600_000);
  assert.deepEqual(got.wrongShape, ["400", 'the input "x" has the shape [1, 2]: expected float32[nx3]']);
  assert.equal(got.noModel[0], "404");
  assert.equal(got.noVersion[0], "404");
  assert.deepEqual(got.compressed, ["415", "the request is compressed (gzip): send it as it is"]);
  assert.equal(got.noKey[0], "401");
});
