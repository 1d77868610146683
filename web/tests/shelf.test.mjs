/** Blobs that tabs of one browser share: fetched once, kept over a reload, never believed without their hash. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const MIB = 1 << 20;
const LOOKUP = `
  @group(0) @binding(0) var<storage, read> index: array<u32>;
  @group(0) @binding(1) var<storage, read> table: array<u32>;
  @group(0) @binding(2) var<storage, read_write> output: array<u32>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) { output[id.x] = table[index[id.x]] + 1u; }
  }`;
const NEXT = `
  @group(0) @binding(0) var<storage, read> input: array<u32>;
  @group(0) @binding(1) var<storage, read_write> output: array<u32>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) { output[id.x] = input[id.x] + 1u; }
  }`;

let coordinator;
let front;
let browser;
let shoal;
let tables = 0;
/** Asks for blobs as the coordinator heard them, and what happens to the next of them. */
const asked = [];
let cut;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator, { cut: hear });
  shoal = await connect(coordinator.url, coordinator.key);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

function hear(ask) {
  asked.push(ask);
  return cut?.(ask);
}

/** A front whose Workers that keep files run `code` first. */
async function startChanged(t, code) {
  const file = (path, bytes) => (/(gpu|brain|keep)-worker\.js$/.test(path) ? `${code}\n${bytes}` : bytes);
  const changed = await startFront(coordinator, { cut: hear, file });
  t.after(() => changed.close());
  return changed;
}

/** A browser of its own, which keeps nothing beyond the test, and tabs of it that lend their GPU. */
async function tabsOf(t, count, at = front) {
  const context = await browser.newContext();
  t.after(() => context.close());
  return { context, tabs: await joinAll(context, count, at) };
}

async function joinAll(context, count, at = front) {
  const tabs = await Promise.all(Array.from({ length: count }, () => joinTab(context, at, { lend: { cpu: 0 } })));
  await Promise.all(tabs.map((tab) => tab.joined()));
  return tabs;
}

/** Numbers that no test had before, stored. */
async function newTable(bytes) {
  const seed = ++tables * 0x9e3779b1;
  const table = new Uint32Array(bytes / 4).map((_, at) => Math.imul(at ^ seed, 0x85ebca6b));
  return { table, ...(await shoal.upload(table)) };
}

/** Every unit reads the whole table. */
async function lookUp({ table, hash }, { units = 4, unit = 256, onProgress } = {}) {
  const index = new Uint32Array(units * unit).map(() => Math.floor(Math.random() * table.length));
  const inputs = [index, { data: { blob: hash }, whole: true }];
  const out = await shoal.map({ wgsl: LOOKUP, inputs, out: "u32", unit }, { onProgress });
  assert.ok(out.every((value, at) => value === (table[index[at]] + 1) >>> 0), "other numbers came out");
}

const asksFor = ({ hash }) => asked.filter((ask) => ask.hash === hash).map(({ range }) => range ?? "all");
const onShelf = ({ page }) => page.evaluate(async () => (await import("/assets/sdk.js")).shelf.size());

/** Changes some bytes of a file. */
const spoil = ({ page }, name, position) =>
  page.evaluate(
    async ({ name, position }) => {
      const all = await (await navigator.storage.getDirectory()).getDirectoryHandle("shoal-shelf");
      for await (const pool of all.values()) {
        const file = await (await pool.getFileHandle(name)).createWritable({ keepExistingData: true });
        await file.write({ type: "write", position, data: new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]) });
        await file.close();
      }
    },
    { name, position },
  );

/** Pieces are written after they were used. */
async function untilShelfHas(tab, bytes) {
  for (let tries = 0; (await onShelf(tab)) < bytes; tries++) {
    assert.ok(tries < 1000, `${await onShelf(tab)} bytes are kept, not ${bytes}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("ten tabs fetch one copy", async (t) => {
  const blob = await newTable(4 * MIB);
  const { tabs } = await tabsOf(t, 10);
  let job;
  await lookUp(blob, { units: 60, onProgress: ({ id }) => (job = id) });
  const { shares } = await shoal.job(job);
  assert.ok(shares.length > 5, `only ${shares.length} tabs took part`);
  assert.deepEqual(asksFor(blob), ["all"]);
  assert.equal(await onShelf(tabs[0]), 4 * MIB);
});

for (const size of [MIB, 6 * MIB]) {
  test(`a reload keeps it, and a wrong byte is noticed: ${size / MIB} MiB`, async (t) => {
    const blob = await newTable(size);
    const { context, tabs } = await tabsOf(t, 1);
    await lookUp(blob);
    await tabs[0].close();
    const [second] = await joinAll(context, 1);
    await lookUp(blob);
    assert.deepEqual(asksFor(blob), ["all"]);
    await spoil(second, `${blob.hash}.${size}`, 12_345);
    await second.close();
    const [third] = await joinAll(context, 1);
    await lookUp(blob);
    assert.deepEqual(asksFor(blob), ["all", "all"]);
    await third.close();
    await joinAll(context, 1);
    await lookUp(blob);
    assert.deepEqual(asksFor(blob), ["all", "all"]);
  });
}

test("parts of what is kept whole are not asked for", async (t) => {
  const blob = await newTable(6 * MIB);
  await tabsOf(t, 1);
  await lookUp(blob);
  const out = await shoal.map({ wgsl: NEXT, input: { blob: blob.hash }, out: "u32", unit: 300_000 });
  assert.ok(out.every((value, at) => value === (blob.table[at] + 1) >>> 0));
  assert.deepEqual(asksFor(blob), ["all"]);
});

/** One more than each number, in units of four pieces. */
async function next({ table, hash }) {
  const out = await shoal.map({ wgsl: NEXT, input: { blob: hash }, out: "u32", unit: MIB });
  assert.ok(out.every((value, at) => value === (table[at] + 1) >>> 0), "other numbers came out");
}

/** Bytes that were asked for, of ranges and wholes. */
function bytesAsked(blob) {
  const bytes = asksFor(blob).map((range) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(range) ?? [0, 0, blob.table.byteLength - 1];
    return to - from + 1;
  });
  return bytes.reduce((sum, size) => sum + size, 0);
}

test("parts of a large blob come once, and all of it is made of them", async (t) => {
  const blob = await newTable(16 * MIB);
  const { context, tabs } = await tabsOf(t, 1);
  await next(blob);
  assert.equal(bytesAsked(blob), 16 * MIB);
  await untilShelfHas(tabs[0], 16 * MIB);
  await next(blob);
  await tabs[0].close();
  const [again] = await joinAll(context, 1);
  await next(blob);
  assert.equal(bytesAsked(blob), 16 * MIB);
  await lookUp(blob);
  assert.equal(bytesAsked(blob), 16 * MIB, "the whole was fetched, not made of its pieces");
  assert.equal(await onShelf(again), 16 * MIB, "it is kept twice");
});

test("of kept pieces the one that the disk changed comes again", async (t) => {
  const blob = await newTable(16 * MIB);
  const { context, tabs } = await tabsOf(t, 1);
  await next(blob);
  await untilShelfHas(tabs[0], 16 * MIB);
  await tabs[0].close();
  const page = await openPage(context, `${front.url}/join`);
  await spoil({ page }, `${blob.hash}.${16 * MIB}.held`, 5 * MIB + 12_345);
  await joinAll(context, 1);
  await next(blob);
  assert.equal(bytesAsked(blob), 17 * MIB);
});

test("a part with a wrong byte is not computed with", async (t) => {
  const blob = await newTable(16 * MIB);
  const liar = await startFront(coordinator, {
    blob: (_, bytes) => {
      bytes[bytes.length - 3] ^= 1;
      return bytes;
    },
  });
  t.after(() => liar.close());
  const { tabs } = await tabsOf(t, 1, liar);
  const job = shoal.map({ wgsl: NEXT, input: { blob: blob.hash }, out: "u32", unit: MIB });
  await assert.rejects(job, /other bytes came for piece/);
  assert.ok((await tabs[0].units()).every(({ type }) => type !== "finished"), "some unit was computed");
});

test("a connection that breaks is followed by one for the rest", async (t) => {
  const blob = await newTable(6 * MIB);
  await tabsOf(t, 1);
  cut = ({ hash, range }) => hash === blob.hash && !range && { after: 3.5 * MIB };
  t.after(() => (cut = undefined));
  await lookUp(blob);
  // What a slow tab had not read yet is lost with the connection.
  const fromPiece = (piece) => `bytes=${piece * MIB}-${6 * MIB - 1}`;
  const [first, rest, ...more] = asksFor(blob);
  assert.deepEqual([first, more], ["all", []]);
  assert.ok([1, 2, 3].map(fromPiece).includes(rest), rest);
});

test("what came before a tab was closed is not fetched again", async (t) => {
  const blob = await newTable(6 * MIB);
  const { context, tabs } = await tabsOf(t, 1);
  cut = ({ hash, range }) => hash === blob.hash && !range && { after: 2.5 * MIB, stays: true };
  t.after(() => (cut = undefined));
  const done = lookUp(blob);
  while ((await onShelf(tabs[0])) < 2 * MIB) await tabs[0].page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 10)));
  await tabs[0].close();
  await joinAll(context, 1);
  await done;
  assert.deepEqual(asksFor(blob), ["all", `bytes=${2 * MIB}-${6 * MIB - 1}`]);
});

test("those longest not used go first, and what does not fit is fetched anyway", async (t) => {
  const [first, second, third, large] = await Promise.all([5, 5, 5, 14].map((size) => newTable(size * MIB)));
  // Browsers do not say what they allow, so they are made to.
  const small = await startChanged(t, `StorageManager.prototype.estimate = async () => ({ quota: ${24 * MIB}, usage: 0 });`);
  const { context, tabs } = await tabsOf(t, 1, small);
  let [tab] = tabs;
  const again = async () => {
    await tab.close();
    [tab] = await joinAll(context, 1, small);
  };
  await lookUp(first);
  await lookUp(second);
  await again();
  await lookUp(first);
  await lookUp(third);
  assert.equal(await onShelf(tab), 10 * MIB);
  await again();
  await lookUp(large);
  await lookUp(first);
  await lookUp(second);
  assert.deepEqual([first, second, third, large].map((blob) => asksFor(blob).length), [1, 2, 1, 1]);
});

const WITHOUT = {
  "without such files": "delete FileSystemFileHandle.prototype.createSyncAccessHandle;",
  "where they are forbidden": `StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException("no", "SecurityError"));`,
  "where writing fails": `FileSystemSyncAccessHandle.prototype.write = () => { throw new DOMException("full", "QuotaExceededError"); };`,
};
for (const [where, code] of Object.entries(WITHOUT)) {
  test(`a browser ${where} fetches as ever`, async (t) => {
    await tabsOf(t, 2, await startChanged(t, code));
    await lookUp(await newTable(MIB));
    await lookUp(await newTable(6 * MIB));
  });
}

test("the donor sees what is kept, and removes it", async (t) => {
  const { context, tabs } = await tabsOf(t, 1);
  await lookUp(await newTable(2 * MIB));
  const page = await openPage(context, front.joinLink);
  await page.getByText(/keeps 2\S* MiB of programs and inputs/).waitFor();
  await page.getByRole("button", { name: "Remove them" }).click();
  await page.getByText("of programs and inputs").waitFor({ state: "hidden" });
  assert.equal(await onShelf(tabs[0]), 0);
});
