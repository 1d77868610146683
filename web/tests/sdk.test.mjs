/** The SDK's parts that need no browser. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { send, startPool } from "./lib/pool.mjs";
import { load } from "./lib/typescript.mjs";

const { parseEvents, ShoalError, assemble, Answers, typed, outType, connect, Shoal, settled } = await load(
  "http.ts",
  "picture.ts",
  "answers.ts",
  "arrays.ts",
  "client.ts",
  "workers/program/world.ts",
);

function streamOf(...pieces) {
  const bytes = pieces.map((piece) => new TextEncoder().encode(piece));
  return new ReadableStream({
    pull(controller) {
      const piece = bytes.shift();
      if (piece) controller.enqueue(piece);
      else controller.close();
    },
  });
}

test("events are read however the bytes are cut", async () => {
  const pieces = ["event: jo", "b\ndata: {\"a\"", ":1}\n\n: comment\r\ndata: one\r\ndata: two\r\n\r", "\nevent: x\n\n"];
  const events = [];
  for await (const event of parseEvents(streamOf(...pieces))) events.push(event);
  assert.deepEqual(events, [
    { event: "job", data: '{"a":1}' },
    { event: "message", data: "one\ntwo" },
  ]);
});

test("tiles become rows, also at the edges", () => {
  const info = { width: 5, height: 3, tile: 2, pixel: "rgba8", samples: 1 };
  const tiles = new Uint8Array(3 * 2 * 2 * 2 * 4);
  for (let tile = 0; tile < 6; tile++) tiles.fill(tile + 1, tile * 16, tile * 16 + 16);
  const { pixels } = assemble(info, tiles.buffer);
  const reds = Array.from({ length: 15 }, (_, i) => pixels[i * 4]);
  assert.deepEqual(reds, [1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6]);
});

test("answers are found by their ends", () => {
  const bytes = new TextEncoder().encode("onetwo");
  const answers = new Answers(bytes, new BigUint64Array([3n, 3n, 6n]));
  assert.deepEqual([...answers], ["one", "", "two"]);
  assert.throws(() => answers.at(3), RangeError);
});

test("a result has the type of the kernel's output", () => {
  const job = { output: { type: "u32", perItem: 1 } };
  assert.equal(outType(job), "u32");
  assert.throws(() => outType(job, "f32"), /type u32, not f32/);
  assert.throws(() => outType({ output: { type: "f64", perItem: 1 } }), /f64/);
  assert.ok(typed(new ArrayBuffer(8), "i32") instanceof Int32Array);
});

test("a refusal comes with the coordinator's words", async (t) => {
  const error = { code: "bad_kernel", message: "line 3: no", details: { line: 3 } };
  const pool = await startPool({
    routes: {
      "POST /api/v1/jobs": (_, response) => send(response, 400, "application/json", JSON.stringify({ error })),
      "GET /api/v1/pool": (_, response) => send(response, 401, "text/plain", "who are you?"),
    },
  });
  t.after(() => pool.close());
  const refused = await new Shoal(pool.url, "k").submit({ kind: "noop", items: 1 }).catch((error) => error);
  assert.ok(refused instanceof ShoalError);
  assert.deepEqual([refused.status, refused.code, refused.message], [400, "bad_kernel", "line 3: no"]);
  assert.deepEqual(refused.details, { line: 3 });
  await assert.rejects(connect(pool.url, "wrong"), /401: who are you/);
  await pool.close();
  await assert.rejects(connect(pool.url, "k"), (error) => error.code === "unreachable");
});

test("a job whose submitting was under way is cancelled with it", async (t) => {
  const abort = new AbortController();
  const cancelled = [];
  const answer = (response) => send(response, 200, "application/json", JSON.stringify({ id: 7, state: "running" }));
  const pool = await startPool({
    routes: {
      "POST /api/v1/jobs": (_, response) => {
        abort.abort(new Error("enough"));
        answer(response);
      },
      "POST /api/v1/jobs/7/cancel": (request, response) => {
        cancelled.push(request.url);
        answer(response);
      },
    },
  });
  t.after(() => pool.close());
  const shoal = new Shoal(pool.url, "k");
  const options = { wgsl: "", width: 1, height: 1 };
  await assert.rejects(shoal.render(options, { signal: abort.signal }), /enough/);
  assert.deepEqual(cancelled, ["/api/v1/jobs/7/cancel"]);
  await assert.rejects(shoal.render(options, { signal: abort.signal }), /enough/);
  assert.equal(cancelled.length, 1, "nothing is submitted any more");
});

test("a program's random bytes are the published sequence", () => {
  const bytes = new Uint8Array(11);
  settled(0).fill(bytes);
  assert.equal(Buffer.from(bytes).toString("hex"), "afcd1d7b39a820e2" + "f465b9");
  const clock = settled(5);
  assert.deepEqual([clock.look(true), clock.look(false)], [0n, 1000n]);
  clock.sleep(5n);
  assert.equal(clock.look(true), 2005n);
});
