// Every example runs by the command line, and gives what it says.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { it } from "node:test";

import { loadNpy, saveNpy } from "./lib/npy.mjs";
import { folder, KERNELS, PROGRAMS, ROOT, SHOAL } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";

const COUNT = 10_000;
const ramp = (scale) => Float32Array.from({ length: COUNT }, (_, i) => i * scale);

/** One test for each kernel and program, by name; `path` gives a place in the test's folder. */
const EXAMPLES = {
  "wave.wgsl": ({ kernel, path, shoal }) => {
    const x = ramp(0.01);
    saveNpy(path("x.npy"), x, [100, 100]);
    shoal("map", kernel, path("x.npy"), "-o", path("y.npy"));
    const { array, shape } = loadNpy(path("y.npy"));
    assert.deepEqual(shape, [100, 100]);
    const wave = (x, length, height, phase) => height * Math.sin((x * 6.2831853) / length + phase);
    near(array, x, (x) => wave(x, 8, 1, 0) + wave(x, 3.1, 0.4, 1.3) + wave(x, 1.7, 0.2, 0.7) + wave(x, 0.61, 0.05, 2.9));
  },

  "saxpy.wgsl": ({ kernel, path, shoal }) => {
    const [x, y] = [ramp(0.5), ramp(-0.25)];
    saveNpy(path("x.npy"), x);
    saveNpy(path("y.npy"), y);
    shoal("map", kernel, path("x.npy"), path("y.npy"), "--param", "a=2.5", "-o", path("out.npy"));
    near(loadNpy(path("out.npy")).array, x, (x, i) => 2.5 * x + y[i]);
  },

  "spiral.wgsl": ({ kernel, path, shoal }) => {
    shoal("map", kernel, "--items", COUNT, "--param", "turns=3", "-o", path("out.npy"));
    const { array } = loadNpy(path("out.npy"));
    assert.equal(array.length, 2 * COUNT);
    near(array.filter((_, i) => i % 2 === 0), ramp(1), (i) => (i / COUNT) * Math.cos((i / COUNT) * 3 * 6.2831853));
  },

  "histogram.wgsl": ({ kernel, path, shoal }) => {
    const samples = Uint32Array.from({ length: 256 * 40 }, (_, i) => (i * 37 + (i >> 8) * 11) % 256);
    saveNpy(path("in.npy"), samples);
    shoal("map", kernel, path("in.npy"), "--in-per", 256, "--out-per", 8, "-o", path("out.npy"));
    const expected = new Uint32Array(40 * 8);
    samples.forEach((sample, i) => expected[(i >> 8) * 8 + (sample >> 5)]++);
    assert.deepEqual(loadNpy(path("out.npy")).array, expected);
  },

  "matmul.wgsl": ({ kernel, path, shoal }) => {
    const side = 256;
    const matrix = (f) => Float32Array.from({ length: side * side }, (_, i) => f(Math.floor(i / side), i % side));
    const [a, b] = [matrix((r, c) => ((r + c) % 7) - 3), matrix((r, c) => ((r * 3 + c) % 5) - 2)];
    saveNpy(path("a.npy"), a, [side, side]);
    saveNpy(path("b.npy"), b, [side, side]);
    shoal("map", kernel, path("a.npy"), path("b.npy"), "--in-per", `a=${side}`, "--whole", "b", "--out-per", side, "-o", path("c.npy"));
    const { array } = loadNpy(path("c.npy"));
    for (const [r, c] of [[0, 0], [17, 200], [255, 255]]) {
      let sum = 0;
      for (let k = 0; k < side; k++) sum += a[r * side + k] * b[k * side + c];
      assert.equal(array[r * side + c], sum, `row ${r}, column ${c}`);
    }
  },

  "mandelbrot.wgsl": ({ kernel, path, shoal }) => {
    shoal("render", kernel, "--size", "200x120", "--samples", 2, "-o", path("out.png"));
    assertPng(path("out.png"), 200, 120);
  },

  "julia.wgsl": ({ kernel, path, shoal }) => {
    shoal("render", kernel, "--size", "200x120", "--param", "c=-0.79,0.15", "-o", path("out.png"));
    assertPng(path("out.png"), 200, 120);
  },

  "path.wgsl": ({ kernel, path, shoal }) => {
    shoal("render", kernel, "--size", "160x90", "--samples", 2, "-o", path("out.png"));
    assertPng(path("out.png"), 160, 90);
  },

  // Two chemicals of which none grows beyond what is fed, and a spot that spreads.
  "reaction-diffusion.wgsl": ({ kernel, path, shoal }) => {
    shoal("sim", kernel, "--grid", "96x64", "--steps", 40, "-o", path("field.npy"), "--picture", path("out.png"));
    const { array, shape } = loadNpy(path("field.npy"));
    assert.deepEqual(shape, [64, 96, 2]);
    assert.ok(array.every((value) => value >= 0 && value <= 1.2), "concentrations");
    const spread = array.filter((value, i) => i % 2 === 1 && value > 0.01).length;
    assert.ok(spread > 10 && spread < 64 * 96, `${spread} cells hold the second chemical`);
    assertPng(path("out.png"), 96, 64);
  },

  // What flows into each cell flows out of it again, nearly: its fluid cannot be squeezed.
  "fluid.wgsl": ({ kernel, path, shoal }) => {
    const [width, height] = [96, 64];
    shoal("sim", kernel, "--grid", `${width}x${height}`, "--steps", 30, "-o", path("field.npy"));
    const { array, shape } = loadNpy(path("field.npy"));
    assert.deepEqual(shape, [height, width, 6]);
    const at = (x, y, lane) => array[(((y + height) % height) * width + ((x + width) % width)) * 6 + lane];
    let [squeezed, flow] = [0, 0];
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        squeezed += Math.abs(at(x + 1, y, 0) - at(x - 1, y, 0) + at(x, y + 1, 1) - at(x, y - 1, 1)) / 2;
        flow += Math.hypot(at(x, y, 0), at(x, y, 1));
      }
    }
    assert.ok(flow > 0 && squeezed < 0.2 * flow, `${squeezed} is squeezed of a flow of ${flow}`);
  },

  "primes.wasm": ({ program, shoal }) => {
    const answers = shoal.with("10\n100\n1000\n1000000\n")("exec", program, "--lines");
    assert.equal(answers, "4\n25\n168\n78498\n");
  },

  "wordcount.wasm": ({ program, path, shoal }) => {
    writeFileSync(path("a.txt"), "one two two\nthree three three\n");
    writeFileSync(path("b.txt"), "");
    shoal("exec", program, path("a.txt"), path("b.txt"), "-o", path("out"), "--", "--top", 2);
    assert.equal(readFileSync(path("out/a.txt"), "utf8"), "2 6 30 a.txt\n3 three\n2 two\n");
    assert.equal(readFileSync(path("out/b.txt"), "utf8"), "0 0 0 b.txt\n");
  },

  "greet.wasm": ({ program, shoal }) => {
    assert.equal(shoal("exec", program), "hello\n");
  },

  "shout.wasm": ({ program, shoal }) => {
    assert.equal(shoal.with("hello, größe\n")("exec", program), "HELLO, GRÖSSE\n");
  },

  "lookup.wasm": ({ program, shoal }) => {
    const data = join(ROOT, "examples/programs/lookup/data");
    const answers = shoal.with("a cod and a trout\nnothing\n")("exec", program, "--lines", "--folder", data);
    assert.equal(answers, "cod trout\n\n");
  },
};

it("examples", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  await native(t, pool, join(data, "node"));
  for (const [name, run] of Object.entries(EXAMPLES)) {
    await t.test(name, (t) => {
      const place = folder(t);
      const path = (file) => join(place, file);
      run({ kernel: join(KERNELS, name), program: join(PROGRAMS, name), path, shoal: client(pool) });
    });
  }
  await t.test("each has a test", () => {
    const names = [KERNELS, PROGRAMS].flatMap((place) => readdirSync(place)).filter((name) => /\.(wgsl|wasm)$/.test(name));
    assert.deepEqual(names.sort(), Object.keys(EXAMPLES).sort());
  });
});

/** `shoal(words…)` runs a client verb and gives its stdout; `shoal.with(text)` feeds its stdin. */
function client(pool) {
  const env = { ...process.env, SHOAL_URL: pool.url, SHOAL_KEY: pool.key };
  const withInput = (input) => (...words) => {
    const stdio = ["pipe", "pipe", "inherit"];
    return execFileSync(SHOAL, words.map(String), { env, input, encoding: "utf8", stdio, timeout: 120_000 });
  };
  return Object.assign(withInput(""), { with: withInput });
}

function near(actual, inputs, expected) {
  assert.equal(actual.length, inputs.length);
  inputs.forEach((input, i) => {
    const difference = Math.abs(actual[i] - expected(input, i));
    assert.ok(difference < 1e-3, `item ${i}: ${actual[i]} instead of ${expected(input, i)}`);
  });
}

function assertPng(path, width, height) {
  const png = readFileSync(path);
  assert.equal(png.toString("latin1", 1, 4), "PNG", basename(path));
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [width, height]);
  assert.ok(png.length > 1000, "the picture is empty");
}
