/** The SDK's parts that need no browser. */

import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { test } from "node:test";
import { blake3 } from "@noble/hashes/blake3.js";
import { blake3 as reference } from "./lib/blake3.mjs";
import { send, startPool } from "./lib/pool.mjs";
import { load } from "./lib/typescript.mjs";

const {
  parseEvents,
  ShoalError,
  assemble,
  Answers,
  typed,
  outType,
  connect,
  Shoal,
  settled,
  lowerMemory,
  restReason,
  conditionOf,
  USUAL,
  npyHeader,
  npyType,
  readNpy,
} = await load(
  "http.ts",
  "picture.ts",
  "answers.ts",
  "arrays.ts",
  "client.ts",
  "workers/program/world.ts",
  "workers/program/memory.ts",
  "join/power.ts",
  "npy.ts",
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

test("files that a run left are unpacked when they are asked for", async () => {
  const left = [{ item: 1, input: "b", stderr: "", files: [{ path: "a", size: 2 }, { path: "d/é", size: 0 }] }];
  const packed = new Uint8Array([1, 0, 0, 0, 2, 0, 0, 0, 97, 120, 121, 4, 0, 0, 0, 0, 0, 0, 0, 100, 47, 195, 169]);
  const made = (bytes) => new Answers(new Uint8Array(0), new BigUint64Array(2), [], left, async () => bytes);
  const text = (files) => files.map(({ path, bytes }) => [path, new TextDecoder().decode(bytes)]);
  assert.deepEqual(text(await made(packed).files(1)), [["a", "xy"], ["d/é", ""]]);
  assert.deepEqual(await made(packed).files(0), []);
  for (const end of [4, 8, 10, 22]) await assert.rejects(made(packed.slice(0, end)).files(1), /no files/, String(end));
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

test(".npy files go out and come back, and what is wrong with one is said", async () => {
  for (const data of [Float32Array.of(1, 2.5, -3, 4, 5, 6), BigInt64Array.of(1n, -2n, 3n, 4n, 5n, 2n ** 62n)]) {
    const file = await new Blob([npyHeader(npyType(data), [3, 2]), data]).arrayBuffer();
    assert.equal((file.byteLength - data.byteLength) % 64, 0);
    assert.deepEqual(readNpy(file), { type: npyType(data), shape: [3, 2], data });
  }
  assert.equal(npyHeader("f16", [1]), null);
  const bytes = (string) => Uint8Array.from(string, (c) => c.charCodeAt(0)).buffer;
  const plain = String.fromCharCode(...npyHeader("f32", [2]));
  assert.throws(() => readNpy(bytes(plain.replace("<f4", "|b1"))), /\|b1.*little-endian/);
  assert.throws(() => readNpy(bytes(plain.replace("False", "True "))), /Fortran/);
  assert.throws(() => readNpy(bytes(plain)), /0 bytes.*needs 8/);
  assert.throws(() => readNpy(bytes(plain.slice(0, 40))), /0 bytes.*needs 4/);
  for (const other of ["", "PK\u0003\u0004 something", "\u0093NUMPY"]) {
    assert.throws(() => readNpy(bytes(other)), /not a \.npy/);
  }
});

test("a program's random bytes are the published sequence", () => {
  const bytes = new Uint8Array(11);
  settled(0, 0).fill(bytes);
  assert.equal(Buffer.from(bytes).toString("hex"), "afcd1d7b39a820e2" + "f465b9");
  const clock = settled(5, 0);
  assert.deepEqual([clock.look(true), clock.look(false)], [0n, 1000n]);
  clock.sleep(5n);
  assert.equal(clock.look(true), 2005n);
});

test("the hash that clients sign is the one that names blobs", () => {
  const all = new Uint8Array(300_000).map((_, at) => (at * 31) >> 3);
  for (const length of [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 3072, 5000, 65_536, 300_000]) {
    const bytes = all.subarray(7, 7 + length);
    assert.equal(Buffer.from(blake3(bytes)).toString("hex"), reference(bytes), `${length} bytes`);
  }
});

test("code is signed by whoever submits it, and whoever does not want to does not", async (t) => {
  const bodies = [];
  const pool = await startPool({
    routes: {
      "POST /api/v1/jobs": (_, response, body) => {
        bodies.push(JSON.parse(body));
        send(response, 201, "application/json", JSON.stringify({ id: 1, state: "running" }));
      },
    },
  });
  t.after(() => pool.close());
  const shoal = new Shoal(pool.url, "k");
  const wgsl = "// a kernel with an ä";
  await shoal.submit({ kind: "render", wgsl, width: 1, height: 1, verify: "quorum:3", priority: "interactive" });
  await shoal.submit({ kind: "exec", module: "ab".repeat(32) });
  await shoal.submit({ kind: "noop", items: 1 });
  await new Shoal(pool.url, "k", { signer: null }).submit({ kind: "map", wgsl, inputs: [], items: 1 });
  const [kernel, program, noop, unsigned] = bodies;
  assert.equal(kernel.signature.key, await shoal.signer());
  assert.deepEqual([kernel.verify, kernel.priority], ["quorum:3", "interactive"]);
  assert.equal(program.signature.key, kernel.signature.key);
  assert.deepEqual([noop.signature, unsigned.signature], [undefined, undefined]);
  const isSigned = (hash, { key, signature }) => {
    const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(key, "hex").toString("base64url") };
    const statement = Buffer.concat([Buffer.from("shoal code 1\0"), Buffer.from(hash, "hex")]);
    return verify(null, statement, createPublicKey({ key: jwk, format: "jwk" }), Buffer.from(signature, "hex"));
  };
  assert.ok(isSigned(reference(Buffer.from(wgsl)), kernel.signature));
  assert.ok(isSigned("ab".repeat(32), program.signature));
  assert.ok(!isSigned("ab".repeat(32), kernel.signature));
});

/** A module of these sections: `[id, ...bytes]`. */
function wasm(...sections) {
  const head = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  return new Uint8Array([...head, ...sections.flatMap(([id, ...bytes]) => [id, bytes.length, ...bytes])]);
}

/** `(export "memory" (memory 0))` */
const EXPORT = [7, 1, 6, ...Buffer.from("memory"), 2, 0];

test("a program's memory grows to what its job may use, and no further", () => {
  const pagesOf = (memory, limit) => {
    const lowered = lowerMemory(wasm([5, 1, ...memory], EXPORT), limit);
    const instance = new WebAssembly.Instance(new WebAssembly.Module(lowered));
    const before = instance.exports.memory.buffer.byteLength / 65_536;
    let most = before;
    while (most < 100) {
      try {
        instance.exports.memory.grow(1);
        most++;
      } catch {
        break;
      }
    }
    return [before, most];
  };
  assert.deepEqual(pagesOf([0, 2], 65_536 * 5), [2, 5]);
  assert.deepEqual(pagesOf([1, 2, 9], 65_536 * 5 + 1), [2, 5]);
  assert.deepEqual(pagesOf([1, 2, 3], 65_536 * 5), [2, 3]);
  // A number that takes two bytes.
  assert.deepEqual(pagesOf([1, 0x80 | 3, 0, 0x80, 8], 65_536 * 7), [3, 7]);
});

test("a program that starts too large, or brings no memory of its own, is refused", () => {
  const of = (...sections) => () => lowerMemory(wasm(...sections), 65_536 * 16);
  const refused = (pattern) => (error) => error.failure.kind === "kernel" && pattern.test(error.failure.message);
  assert.throws(of([5, 1, 0, 32], EXPORT), refused(/starts with 2 MiB of memory; the job allows 1 MiB/));
  assert.throws(of([2, 1, 1, 0x65, 1, 0x6d, 2, 0, 1]), refused(/imports its memory/));
  assert.throws(of([5, 2, 0, 1, 0, 1]), refused(/2 memories/));
  assert.throws(of([5, 1, 4, 1]), refused(/no node knows/));
  assert.throws(() => lowerMemory(wasm([5, 1, 0, 2]).subarray(0, 11), 65_536), refused(/middle of a section/));
  // Imports of functions, tables and globals are none of its business.
  const imports = [2, 3, 1, 0x65, 1, 0x66, 0, 0, 1, 0x65, 1, 0x74, 1, 0x70, 1, 1, 2, 1, 0x65, 1, 0x67, 3, 0x7f, 0];
  const bytes = wasm(imports, [5, 1, 1, 1, 1]);
  assert.deepEqual(lowerMemory(bytes, 65_536), bytes);
});

test("the power saver rests a device that is hidden or low, unless the donor wants otherwise", () => {
  const fine = { hidden: false, frozen: false, battery: undefined, metered: false };
  const on = (percent, charging = false) => ({ ...fine, battery: { percent, charging } });
  const rests = (now, lend = {}) => restReason(now, { ...USUAL, ...lend });
  assert.equal(rests(fine), undefined);
  assert.match(rests({ ...fine, hidden: true }), /in the background/);
  assert.equal(rests({ ...fine, hidden: true }, { whenHidden: "slow" }), undefined);
  assert.match(rests(on(29)), /battery is at 29 %/);
  assert.deepEqual([rests(on(30)), rests(on(29, true))], [undefined, undefined]);
  assert.equal(rests(on(5), { onLowBattery: "go on" }), undefined);
  assert.equal(rests(on(90), { onlyPluggedIn: true }), "on battery");
  assert.match(rests({ ...fine, frozen: true }), /to sleep/);
  assert.deepEqual(conditionOf({ ...on(29), frozen: true, metered: true }), {
    visible: false,
    batteryPercent: 29,
    charging: false,
    metered: true,
  });
});
