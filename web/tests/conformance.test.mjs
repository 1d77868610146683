/** The cases of /conformance in Chromium, through the GPU and WASI Workers, simulations as a crew's members ask for them.
 *
 * `SHOAL_PREPARED`: the folder a native run of the cases wrote, with kernels that passed the intake and programs as
 * binaries. `SHOAL_OUTSIDE`: the outside material, if those cases are wanted. `SHOAL_CASE`: only names that contain it. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { blake3 } from "./lib/blake3.mjs";
import { loadCases } from "./lib/case.mjs";
import { openEngines } from "./lib/engines.mjs";
import { openSims } from "./lib/sims.mjs";

const PREPARED = process.env.SHOAL_PREPARED;
const FILTER = process.env.SHOAL_CASE ?? "";

/** Every other kind runs on the GPU, unit by unit. */
const RUN = { exec: runPrograms, sim: runSim };

let engines;
let sims;

before(async () => {
  if (PREPARED) [engines, sims] = await Promise.all([openEngines(), openSims()]);
});
after(() => Promise.all([engines?.close(), sims?.close()]));

if (!PREPARED) {
  test("conformance", { skip: "SHOAL_PREPARED names no folder" }, () => undefined);
} else {
  for (const each of loadCases(PREPARED).filter(({ name }) => name.includes(FILTER))) {
    test(each.name, () => (RUN[each.json.kind] ?? runKernel)(each));
  }
}

async function runKernel(each) {
  const { items, kind, inputs: parts, render } = JSON.parse(readFileSync(join(each.prepared, "work.json"), "utf8"));
  const bytes = [...readFileSync(join(each.prepared, "work.bin"))];
  const inputs = parts.map((part, at) => ({ ...part, blob: store(readFileSync(join(each.prepared, `input-${at}.bin`))) }));
  const info = { name: each.name, owner: "test", items, limits: limits({}), work: { kind, inputs, bytes } };
  const unit = each.json.unit ?? items;
  const spans = [];
  for (let start = 0; start < items; start += unit) spans.push({ start, len: Math.min(unit, items - start) });
  const answers = await engines.run("gpu", info, spans);
  if (each.json.expect.failure) {
    const failure = answers.find(({ failure }) => failure)?.failure;
    for (const part of each.json.expect.failure) assert.ok(failure?.message.includes(part), JSON.stringify(failure));
    return;
  }
  for (const { failure } of answers) assert.equal(failure, undefined);
  const found = Buffer.concat(answers.map(({ bytes }) => bytes));
  assert.equal(each.difference(render ? rows(render, found) : found), undefined);
}

/** However the rows are shared out, and whether edges are computed apart or not, the bits must be the same, and those expected. */
async function runSim(each) {
  const { width, height, steps, pokes, bands: splits, expect } = each.json;
  const file = (name) => (existsSync(join(each.prepared, name)) ? readFileSync(join(each.prepared, name)) : undefined);
  const grid = { work: file("work.bin"), width, height, first: file("first.bin") };
  let one;
  const ways = splits.flatMap((lengths) => [false, true].map((apart) => ({ lengths, apart })));
  for (const { lengths, apart } of ways) {
    const bands = lengths.map((len, at) => ({ start: lengths.slice(0, at).reduce((sum, len) => sum + len, 0), len }));
    const { field, failure } = await sims.run(grid, { bands, steps, apart, ...(pokes ? { pokes } : {}) });
    if (expect.failure) {
      for (const part of expect.failure) assert.ok(failure?.message.includes(part), JSON.stringify(failure));
      continue;
    }
    assert.equal(failure, undefined);
    if (one) assert.ok(field.equals(one), `${lengths} gives other bits than ${splits[0]}`);
    else assert.equal(each.difference(field), undefined);
    one = field;
  }
}

/** Tiles one after the other become a picture row by row. */
function rows({ width, height, tile, pixel }, tiles) {
  const size = pixel === "rgba8" ? 4 : 16;
  const columns = Math.ceil(width / tile);
  const picture = Buffer.alloc(width * height * size);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const number = Math.floor(y / tile) * columns + Math.floor(x / tile);
      const from = (number * tile * tile + (y % tile) * tile + (x % tile)) * size;
      tiles.copy(picture, (y * width + x) * size, from, from + size);
    }
  }
  return picture;
}

async function runPrograms(each) {
  const { json } = each;
  const module = store(readFileSync(join(each.prepared, "program.wasm")));
  const folder = json.folder?.map(({ name, content }) => ({ name, ...store(each.content(content)) }));
  for (const [at, run] of json.runs.entries()) {
    const item = run.item ?? at;
    const work = {
      kind: "exec",
      module,
      args: json.args ?? [],
      env: Object.entries(json.env ?? {}),
      items: itemOf(item, run, each.content(run.stdin)),
      ...(folder ? { folder: store(Buffer.from(JSON.stringify(folder))) } : {}),
      clock: json.clock ?? false,
      failing: { stop: true, ok: json.ok ?? [0], retry: 0 },
      leaves: json.leaves ?? false,
    };
    const info = { name: each.name, owner: "test", items: item + 1, limits: limits(json.limits), work };
    const [answer] = await engines.run("cpu", info, [{ start: item, len: 1 }]);
    judge(each, item, run.expect, answer);
    if (["exit", "trap", "memory", "output"].includes(answer.failure?.kind)) {
      const goesOn = { ...info, work: { ...work, failing: { ...work.failing, stop: false } } };
      const [kept] = await engines.run("cpu", goesOn, [{ start: item, len: 1 }]);
      judgeKept(answer.failure, kept);
    }
  }
}

const FLAG = 2 ** 31;
const LIMITED = 2 ** 30;

/** A run that fails by itself leaves the same bytes everywhere; how deep calls may go is the engine's own. */
function judgeKept({ kind, code, stderr, message }, { bytes, failure }) {
  if (/call stack/i.test(message)) return assert.equal(failure?.kind, "trap");
  assert.equal(failure, undefined, JSON.stringify(failure));
  const at = 4 + (bytes.readUInt32LE(0) - FLAG);
  assert.ok(at >= 4, "the length says that it failed");
  const [word, flag] = { exit: [code, 0], trap: [0, FLAG], memory: [1, LIMITED], output: [2, LIMITED] }[kind];
  assert.equal(bytes.readInt32LE(at), word);
  assert.equal(bytes.readUInt32LE(at + 4), bytes.length - at - 8 + flag);
  if (kind === "output") assert.equal(at, 4, "a flood is not kept");
  assert.equal(bytes.subarray(at + 8).toString(), stderr);
}

/** One item of that number, as a file if it has a name, else as a line. */
function itemOf(item, { input }, stdin) {
  const data = store(stdin);
  if (input !== undefined) {
    const files = Array.from({ length: item + 1 }, () => ({ name: input, ...data }));
    return { kind: "files", manifest: store(Buffer.from(JSON.stringify(files))) };
  }
  // Only the last end counts; the table before it is zeros, made when asked for.
  const ends = {
    length: (item + 1) * 8,
    slice(from, to) {
      const bytes = Buffer.alloc(to - from);
      if (to === ends.length) bytes.writeBigUInt64LE(BigInt(stdin.length), bytes.length - 8);
      return bytes;
    },
  };
  return { kind: "lines", data, ends: store(ends) };
}

function judge(each, item, expect, { bytes, failure }) {
  if (failure) assert.equal(failure.item, item, JSON.stringify(failure));
  if (expect.exit !== undefined) assert.deepEqual([failure?.kind, failure?.code], ["exit", expect.exit]);
  else if (expect.limit !== undefined) assert.equal(failure?.kind, expect.limit, JSON.stringify(failure));
  else if (expect.trap !== undefined) {
    assert.equal(failure?.kind, "trap", JSON.stringify(failure));
    assert.ok(failure.message.includes(expect.trap), failure.message);
  } else {
    assert.equal(failure, undefined);
    const { stdout, stderr, files } = parts(bytes);
    const wanted = Object.entries(expect.files ?? {}).map(([path, content]) => [path, each.content(content).toString("hex")]);
    assert.deepEqual(files, wanted);
    if (expect.stderr !== undefined) assert.ok(stderr.includes(expect.stderr), stderr);
    if (expect.stdout !== undefined) assert.ok(stdout.equals(each.content(expect.stdout)), stdout.toString().slice(0, 500));
    for (const part of expect.contains ?? []) assert.ok(stdout.includes(part), `${part} is missing`);
  }
  if (failure && expect.stderr !== undefined) assert.ok(failure.stderr.includes(expect.stderr), failure.stderr);
}

const LEFT = 2 ** 30;
const DONE = 2 ** 29;

/** The one answer of a unit, and what its run left beside it. */
function parts(bytes) {
  const word = bytes.readUInt32LE(0);
  const size = word & (LEFT - 1);
  const stdout = bytes.subarray(4, 4 + size);
  if (word < LEFT) {
    assert.equal(bytes.length, 4 + size);
    return { stdout, stderr: "", files: [] };
  }
  const [packed, kept] = [bytes.readUInt32LE(4 + size), bytes.readUInt32LE(8 + size) - DONE];
  const behind = bytes.subarray(12 + size);
  assert.equal(behind.length, kept + packed);
  const files = [];
  for (let at = kept; at < behind.length; ) {
    const [path, file] = [behind.readUInt32LE(at), behind.readUInt32LE(at + 4)];
    const from = at + 8 + path;
    files.push([behind.subarray(at + 8, from).toString(), behind.subarray(from, from + file).toString("hex")]);
    at = from + file;
  }
  return { stdout, stderr: behind.subarray(0, kept).toString(), files };
}

function limits({ seconds = 30, memoryMiB = 256, outputMiB = 16 } = {}) {
  return { time: seconds * 1000, memory: memoryMiB * 2 ** 20, output: outputMiB * 2 ** 20 };
}

/** Tables of more bytes are only ever fetched in parts, which no hash covers. */
const FETCHED_WHOLE = 4 << 20;
let made = 0;

function store(bytes) {
  // What is made when asked for is no array: its bytes must be asked for before they can be hashed.
  const isWhole = bytes instanceof Uint8Array || bytes.length <= FETCHED_WHOLE;
  const hash = isWhole ? blake3(bytes.slice(0, bytes.length)) : (++made).toString(16).padStart(64, "0");
  engines.blobs[hash] = bytes;
  return { hash, size: bytes.length };
}
