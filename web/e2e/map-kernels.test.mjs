// What the page "Writing map kernels" prints runs as printed, gives what it says, and refuses what it says.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { it } from "node:test";

import { loadNpy } from "./lib/npy.mjs";
import { folder, KERNELS, ROOT, SHOAL } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";

const PAGE = readFileSync(join(ROOT, "docs/map-kernels.md"), "utf8");
const PLACE = join(KERNELS, "map");
const FILES = readdirSync(PLACE).filter((name) => name.endsWith(".wgsl"));
const COUNT = 300_000;
/** One element more than is given to every device unasked. */
const TOO_LARGE = 128 * 1024 * 1024 + 4;

const blocks = (kind) => [...PAGE.matchAll(new RegExp(`^\`\`\`${kind}\\n([^]*?)^\`\`\``, "gm"))].map((match) => match[1]);
const COMMANDS = blocks("sh").filter((block) => block.startsWith("shoal "));
const INPUTS = blocks("sh").filter((block) => !block.startsWith("shoal "));

const { fround } = Math;
/** By the three rules for what lies beyond the ends. */
const clamped = (array, i) => array[Math.min(Math.max(i, 0), array.length - 1)];
const ring = (array, i) => array[(i + array.length) % array.length];
const mirrored = (array, i) => array[i < 0 ? -1 - i : i >= array.length ? 2 * array.length - 1 - i : i];
const sum = (array) => array.reduce((a, b) => a + b, 0);

/** What each command must give, by its kernel and, if it has one, its reduction. `said` is its stdout. */
const GIVES = {
  "scale.wgsl": ({ result, signal }) => same(result("scaled.npy"), COUNT, (i) => fround(2.5 * signal[i])),
  "linspace.wgsl": ({ result }) => near(result("points.npy"), COUNT, (i) => -1 + (2 * i) / (COUNT - 1)),
  "difference.wgsl": ({ result, signal }) => same(result("steps.npy"), COUNT, (i) => fround(signal[i] - clamped(signal, i - 1))),
  "average.wgsl": ({ result, signal }) =>
    near(result("smooth.npy"), COUNT, (i) => sum([-2, -1, 0, 1, 2].map((k) => mirrored(signal, i + k))) / 5),
  "ring.wgsl": ({ result, signal }) =>
    near(result("cooler.npy"), COUNT, (i) => signal[i] + 0.25 * (ring(signal, i - 1) - 2 * signal[i] + ring(signal, i + 1))),
  "delay.wgsl": ({ result, signal }) => same(result("delayed.npy"), COUNT, (i) => clamped(signal, i - (i % 17))),
  "reverse.wgsl": ({ result, signal }) => same(result("backwards.npy"), COUNT, (i) => signal[COUNT - 1 - i]),
  "lookup.wgsl": ({ result, samples }) => same(result("colours.npy"), COUNT, (i) => 65793 * samples[i]),
  "rows.wgsl": ({ result, signal }) =>
    near(result("means.npy"), COUNT / 100, (row) => sum(signal.subarray(row * 100, row * 100 + 100)) / 100),
  "polar.wgsl": ({ result, signal }) => {
    const points = result("polar.npy", [COUNT / 2, 2]);
    const to = (i) => [signal[2 * i] - 0.5, signal[2 * i + 1] - 0.25];
    near(points, COUNT, (k) => (k % 2 === 0 ? Math.hypot(...to(k / 2)) : Math.atan2(...to((k - 1) / 2).reverse())));
  },
  "level.wgsl": ({ result, signal }) => {
    const block = (i) => signal.subarray(i - (i % 64), Math.min(i - (i % 64) + 64, COUNT));
    near(result("level.npy"), COUNT, (i) => signal[i] - sum(block(i)) / block(i).length);
  },
  "scale.wgsl mean": ({ said, signal }) => {
    const [mean] = numbers(said, 1);
    assert.ok(Math.abs(mean - (2.5 * sum(signal)) / COUNT) < 1e-5, said);
    assert.equal(mean.toFixed(3), printed(/mean of the scaled signal, about ([\d.]+)\./));
  },
  "dot.wgsl sum": ({ said, signal, weights }) => {
    const [dot] = numbers(said, 1);
    assert.ok(Math.abs(dot - sum(signal.map((x, i) => x * weights[i]))) < 0.5, said);
    assert.equal(Number(dot.toPrecision(4)), Number(printed(/prints one number, about (\d+)\./)));
  },
  "histogram.wgsl sum": ({ result, samples }) => {
    const counts = new BigUint64Array(8);
    for (const sample of samples) counts[sample >> 5]++;
    assert.deepEqual(result("counts.npy", [8]), counts);
    assert.deepEqual(printed(/8 numbers of type `uint64`: ([^.]+)\./).match(/\d+/g), [...counts].map(String));
  },
  "peak.wgsl peak-combine.wgsl": ({ said, signal }) => {
    const place = signal.indexOf(signal.reduce((a, b) => Math.max(a, b)));
    assert.deepEqual(numbers(said, 2).map(fround), [signal[place], place]);
    assert.equal(printed(/the value, 1\.6, and its place, (\d+)\./), `${place}`);
  },
};

it("the page on map kernels", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  await native(t, pool, join(data, "node"));
  const here = folder(t);
  symlinkSync(join(ROOT, "examples"), join(here, "examples"));
  const env = { ...process.env, SHOAL_URL: pool.url, SHOAL_KEY: pool.key, PATH: `${dirname(SHOAL)}:${process.env.PATH}` };
  const options = { cwd: here, env, encoding: "utf8", timeout: 120_000 };
  const run = (script) => execFileSync("bash", ["-euo", "pipefail", "-c", script], options);

  assert.equal(INPUTS.length, 1, "one block makes all arrays");
  run(INPUTS[0]);
  const bytes = (name) => new Uint8Array(readFileSync(join(here, name))).buffer;
  const arrays = {
    signal: new Float32Array(bytes("signal.f32")),
    weights: new Float32Array(bytes("weights.f32")),
    samples: new Uint32Array(bytes("samples.u32")),
  };
  const result = (name, shape) => {
    const found = loadNpy(join(here, name));
    if (shape) assert.deepEqual(found.shape, shape);
    return found.array;
  };

  for (const command of COMMANDS) {
    await t.test(nameOf(command), () => {
      const check = GIVES[nameOf(command)];
      assert.ok(check, `nobody says what comes of ${command}`);
      check({ said: run(command), result, ...arrays });
    });
  }
  await t.test("every expectation belongs to a command", () => {
    assert.deepEqual(COMMANDS.map(nameOf).sort(), Object.keys(GIVES).sort());
  });
  await t.test("large jobs were cut into several units", async () => {
    const { jobs } = await pool.api.json("GET", "/api/v1/jobs");
    const large = jobs.filter((job) => job.state === "done" && job.items >= 100_000);
    assert.ok(large.length > 5);
    for (const job of large) assert.ok(job.unitsDone > 1, `${job.name} had ${job.unitsDone}`);
  });

  const [refused, stopped] = tables();
  for (const [rows, code] of [[refused, 2], [stopped, 1]]) {
    for (const row of rows) {
      await t.test(`${row.written} ends with code ${code}`, () => {
        const words = ["map", ...attempt(row.written, here), "--raw", "f32", "-o", "refused.npy"];
        const { status, stderr } = spawnSync(SHOAL, words, options);
        assert.equal(status, code, stderr);
        assert.ok(stderr.replaceAll("`", "").includes(row.said.replaceAll("`", "")), stderr);
      });
    }
  }
});

it("the page shows the kernels as they are in their files", () => {
  const shown = blocks("wgsl");
  assert.deepEqual(FILES.map((name) => parts(name).body).sort(), shown.sort());
  for (const name of FILES.filter((name) => parts(name).command)) {
    assert.ok(COMMANDS.includes(parts(name).command), `the first lines of ${name} hold another command than the page`);
  }
});

/** A kernel's file: the command in its first lines, and what follows them. */
function parts(name) {
  const text = readFileSync(join(PLACE, name), "utf8");
  const end = text.indexOf("\n\n");
  const lines = text.slice(0, end).split("\n").filter((line) => line.startsWith("//   "));
  const command = lines.map((line) => `${line.slice(5)}\n`).join("");
  return { command, body: text.slice(end + 2) };
}

/** `peak.wgsl peak-combine.wgsl`: the kernel, and how its outputs are brought together. */
function nameOf(command) {
  const last = (path) => path?.split("/").at(-1);
  const [, kernel] = command.match(/shoal map (\S+)/);
  const [, reduce] = command.match(/--reduce (\S+)/) ?? [];
  return [last(kernel), last(reduce)].filter(Boolean).join(" ");
}

/** The rows of the section on what is refused: before the job starts, and while it runs. */
function tables() {
  const from = PAGE.indexOf("## What is refused");
  const section = PAGE.slice(from, PAGE.indexOf("\n## ", from));
  const found = section.split("\n\n").filter((part) => part.startsWith("|"));
  assert.equal(found.length, 2);
  return found.map((table) => {
    const rows = table.trim().split("\n").slice(2);
    assert.ok(rows.length > 1);
    return rows.map((row) => {
      const [, written, said] = row.split("|").map((cell) => cell.trim());
      return { written, said };
    });
  });
}

/** The words of a command that does what the first cell of a row says. */
function attempt(written, here) {
  const [code, ...flags] = [...written.matchAll(/`([^`]+)`/g)].map((match) => match[1]);
  const words = flags.flatMap((flag) => flag.split(" "));
  if (code.endsWith(".wgsl")) return [join(PLACE, code), "signal.f32", ...words];
  const element = code.includes("atomicAdd") ? "atomic<u32>" : "f32";
  writeFileSync(join(here, "refused.wgsl"), kernel(code, element));
  if (!written.includes("128 MiB")) return ["refused.wgsl", "signal.f32", ...words];
  writeFileSync(join(here, "large.f32"), "");
  truncateSync(join(here, "large.f32"), TOO_LARGE);
  return ["refused.wgsl", "large.f32", ...words];
}

const kernel = (statement, element) => `@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<${element}>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    ${statement}
}
`;

/** What the page says comes out. */
function printed(pattern) {
  const found = PAGE.match(pattern);
  assert.ok(found, `the page does not say ${pattern}`);
  return found[1];
}

function numbers(said, count) {
  const lines = said.trim().split("\n");
  assert.equal(lines.length, count, said);
  return lines.map(Number);
}

function same(found, count, expected) {
  assert.equal(found.length, count);
  found.forEach((value, i) => {
    if (value !== expected(i)) assert.fail(`item ${i}: ${value} instead of ${expected(i)}`);
  });
}

function near(found, count, expected) {
  assert.equal(found.length, count);
  found.forEach((value, i) => {
    if (!(Math.abs(value - expected(i)) < 1e-4)) assert.fail(`item ${i}: ${value} instead of ${expected(i)}`);
  });
}
