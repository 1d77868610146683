/** The words of shared GPU buffers: pages and native applications have the same, and nothing else is listened to. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { load } from "./lib/typescript.mjs";

const { accessOf, pack, PEER_PART_BYTES, unpack } = await load("gpu-p2p/words.ts", "gpu-p2p/wgsl.ts", "constants.ts");
/** Those that the native side is tested with. */
const WORDS = JSON.parse(readFileSync(new URL("../../crates/peer/tests/words.json", import.meta.url), "utf8"));

test("all words of native applications are understood, and said the same way", () => {
  for (const words of WORDS) {
    const { words: heard, bytes } = unpack(pack(words, Uint8Array.of(1, 2, 3)));
    assert.deepEqual(heard, words);
    assert.deepEqual([...bytes], [1, 2, 3]);
  }
});

test("words with a piece missing or of another kind are not understood", () => {
  for (const words of WORDS) {
    for (const key of Object.keys(words)) {
      if (words.is === "say" && key === "value") continue;
      const { [key]: _, ...rest } = words;
      assert.throws(() => unpack(pack(rest)), /does not understand/, `${words.is} without ${key}`);
      assert.throws(() => unpack(pack({ ...words, [key]: { not: "this" } })), /does not understand/, `${words.is} with a wrong ${key}`);
    }
  }
  for (const is of ["__proto__", "toString", "none"]) assert.throws(() => unpack(pack({ is })), /does not understand/);
  assert.throws(() => unpack(Uint8Array.of(1, 2)), /without a valid header/);
  assert.throws(() => unpack(Uint8Array.of(255, 255, 255, 255, 1)), /without a valid header/);
});

test("parts are no larger than they are sent", () => {
  const part = WORDS.find(({ is }) => is === "part");
  assert.equal(unpack(pack(part, new Uint8Array(PEER_PART_BYTES))).bytes.byteLength, PEER_PART_BYTES);
  assert.throws(() => unpack(pack(part, new Uint8Array(PEER_PART_BYTES + 1))), /a part of 1048577 bytes; a part has at most 1048576/);
});

test("what a shader does to its buffers is read from its text", () => {
  const code = `
    // @group(0) @binding(9) var<storage, read_write> in_a_comment: array<f32>;
    /* @group(0) @binding(8) /* nested */ var<storage, read_write> too: array<f32>; */
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @binding(1u) @group( 0 )
    var<storage, read_write> b: array<f32>;
    @group(1) @binding(2) var<storage> c: array<f32>;
    @group(1) @binding(3) var<uniform> d: vec4<f32>;
    @group(2) @binding(0) var<storage, read_write> e: array<f32>;
    @group(2) @binding(0) var<storage, read> f: array<f32>;
    const zero = 0;
    @group(zero) @binding(4) var<storage, read_write> g: array<f32>;
    var<workgroup> h: array<f32, 4>;`;
  const found = { "0,0": "read", "0,1": "write", "1,2": "read", "1,3": "uniform", "2,0": "write" };
  assert.deepEqual(Object.fromEntries(accessOf(code)), found);
});
