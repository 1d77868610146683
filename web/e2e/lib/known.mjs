// Jobs of which a test knows every right byte before anybody computes them: a single process did, and liars know what to twist.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { PROGRAMS } from "./places.mjs";
import { MIX, mixed, primeCounts } from "./work.mjs";

/** `{submit(api, rest), answer({start, len}), check(bytes), code, inputs}`: `answer` gives a unit's bytes as a node sends them. */
export function knownMap({ items = 1 << 17, steps = 600, unit = 1 << 12 } = {}) {
  const input = Uint32Array.from({ length: items }, (_, i) => i * 7 + 1);
  const output = input.map((x) => mixed(x, steps));
  const inputs = [Buffer.from(input.buffer)];
  return {
    code: MIX,
    inputs,
    submit: async (api, rest) =>
      api.submit({ kind: "map", wgsl: MIX, inputs: [{ blob: await api.blob(inputs[0]) }], params: { steps }, unit, ...rest }),
    answer: ({ start, len }) => Buffer.from(output.slice(start, start + len).buffer),
    check: (bytes) => assert.ok(Buffer.from(bytes).equals(Buffer.from(output.buffer)), "the result has other bytes"),
  };
}

/** Every pixel a number that any GPU makes alike. */
const PIXELS = `
struct Params { tile_x: u32, tile_y: u32, image_width: u32, stride: u32, samples: u32 }
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var x = (params.tile_y + id.y) * params.image_width + params.tile_x + id.x;
    for (var i = 0u; i < params.samples; i++) {
        x = x * 1664525u + 1013904223u;
        x ^= x >> 15u;
    }
    output[id.y * params.stride + id.x] = x | 0xff000000u;
}`;

/** Tiles divide the picture evenly, so that none is cut at an edge. */
export function knownRender({ width = 512, height = 256, tile = 32, samples = 600 } = {}) {
  const pixel = (x, y) => (mixed(y * width + x, samples) | 0xff000000) >>> 0;
  const columns = width / tile;
  const tileAt = (at) => {
    const [left, top] = [(at % columns) * tile, Math.floor(at / columns) * tile];
    return Uint32Array.from({ length: tile * tile }, (_, i) => pixel(left + (i % tile), top + Math.floor(i / tile)));
  };
  const tiles = Array.from({ length: columns * (height / tile) }, (_, at) => Buffer.from(tileAt(at).buffer));
  return {
    code: PIXELS,
    submit: (api, rest) => api.submit({ kind: "render", wgsl: PIXELS, width, height, tile, samples, ...rest }),
    answer: ({ start, len }) => Buffer.concat(tiles.slice(start, start + len)),
    check: (bytes) => assert.ok(Buffer.from(bytes).equals(Buffer.concat(tiles)), "the picture has other pixels"),
  };
}

export function knownExec({ lines = 60, least = 300_000, unit = 2 } = {}) {
  const limits = Array.from({ length: lines }, (_, i) => least + i * 97);
  const answers = primeCounts(limits).map((count) => Buffer.from(`${count}\n`));
  const code = readFileSync(join(PROGRAMS, "primes.wasm"));
  const inputs = [Buffer.from(limits.map((limit) => `${limit}\n`).join(""))];
  return {
    code,
    inputs,
    submit: async (api, rest) =>
      api.submit({ kind: "exec", module: await api.blob(code), lines: { blob: await api.blob(inputs[0]) }, unit, ...rest }),
    /** The answers' lengths, then the answers. */
    answer: ({ start, len }) => {
      const some = answers.slice(start, start + len);
      const lengths = Uint32Array.from(some, (answer) => answer.length);
      return Buffer.concat([Buffer.from(lengths.buffer), ...some]);
    },
    check: (bytes) => assert.equal(Buffer.from(bytes).toString(), Buffer.concat(answers).toString()),
  };
}
