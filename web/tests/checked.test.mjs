/** What a job can show: how it was checked, why, and a receipt that holds without its coordinator. */

import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { blake3 } from "./lib/blake3.mjs";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const WGSL = `
  @group(0) @binding(0) var<storage, read> input: array<f32>;
  @group(0) @binding(1) var<storage, read_write> output: array<f32>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) { output[id.x] = sin(input[id.x]); }
  }`;

let coordinator;
let front;
let browser;
let shoal;
let job;
let result;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  const tabs = await Promise.all([1, 2].map(async () => joinTab(await browser.newContext(), front)));
  await Promise.all(tabs.map((tab) => tab.joined()));
  const input = new Float32Array(4096).map((_, at) => at / 100);
  const options = { wgsl: WGSL, input, out: "f32", name: "waves", owner: "Ada", verify: "quorum:2", unit: 1024 };
  result = await shoal.map(options, { onProgress: ({ id }) => (job = id) });
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

function isSigned({ receipt, key, signature }) {
  const sorted = (value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]))
      : Array.isArray(value)
        ? value.map(sorted)
        : value;
  const hash = blake3(Buffer.from(JSON.stringify(sorted(receipt))));
  const statement = Buffer.concat([Buffer.from("shoal receipt 1\0"), Buffer.from(hash, "hex")]);
  const jwk = { kty: "OKP", crv: "Ed25519", x: Buffer.from(key, "hex").toString("base64url") };
  return verify(null, statement, createPublicKey({ key: jwk, format: "jwk" }), Buffer.from(signature, "hex"));
}

test("every unit of a quorum was agreed by both tabs", async () => {
  const { verify, unitsDone, unitsChecked, unitsOwn, unitsUnchecked, unitsChecking, signedBy } = await shoal.job(job);
  assert.deepEqual([verify, unitsDone, unitsChecked, unitsOwn, unitsUnchecked, unitsChecking], ["quorum:2", 4, 4, 0, 0, 0]);
  assert.equal(signedBy, await shoal.signer());
  const trust = (await shoal.nodes()).map((node) => node.trust.gpu.streak);
  assert.deepEqual(trust, [4, 4]);
});

test("the receipt is signed, and one changed byte shows", async () => {
  const signed = await shoal.receipt(job);
  const { receipt } = signed;
  assert.equal(signed.key, (await shoal.pool()).key);
  assert.ok(isSigned(signed));
  assert.ok(!isSigned({ ...signed, receipt: { ...receipt, owner: "Eve" } }));
  assert.equal(receipt.code.hash, blake3(Buffer.from(WGSL)));
  assert.equal(receipt.output.hash, blake3(Buffer.from(result.buffer)));
  assert.deepEqual(receipt.units.map(({ checkedBy }) => checkedBy.length), [1, 1, 1, 1]);
});

test("the job is explained, and so are an item's unit and a device", async () => {
  const lines = [await shoal.explain(job), await shoal.explain(job, 2048), await shoal.explainNode(1)];
  for (const said of lines) assert.ok(said.length > 0 && said.every((line) => line.length > 5), said.join());
  await assert.rejects(shoal.explain(job, 99_999), ({ status }) => status === 404);
});

test("the job page shows how it was checked and why, and gives the receipt", async () => {
  const page = await openPage(browser, `${front.url}/jobs/${job}#key=${front.key}`);
  await page.getByText("2 devices of different owners must give the same answer").waitFor();
  await page.locator(".checking .facts", { hasText: "agreed by 2 devices" }).waitFor();
  const lines = (await shoal.explain(job)).length;
  await page.waitForFunction((lines) => document.querySelectorAll(".why li").length === lines, lines);
  await page.getByLabel("About item").fill("2048");
  await page.getByLabel("About item").press("Enter");
  const [first] = await shoal.explain(job, 2048);
  await page.locator(".why li", { hasText: first }).first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Receipt" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), `receipt-${job}.json`);
  assert.ok(isSigned(JSON.parse(await readFile(await download.path(), "utf8"))));
  await page.goto(`${front.url}/#key=${front.key}`);
  await page.getByText("4 right in a row").first().waitFor();
});

test("work of your own device alone is not called checked", async (t) => {
  const alone = await startCoordinator();
  t.after(() => alone.close());
  const site = await startFront(alone);
  t.after(() => site.close());
  const own = await startNode(alone.joinLink, ["--key", alone.key]);
  t.after(() => own.close());
  const pool = await connect(alone.url, alone.key);
  let mine;
  const options = { wgsl: WGSL, input: new Float32Array(11 * 64), name: "mine", unit: 64 };
  await pool.map(options, { onProgress: (job) => (mine = job) });
  const { id, unitsDone, unitsChecked, unitsOwn, unitsUnchecked } = mine;
  assert.deepEqual([unitsDone, unitsChecked, unitsOwn, unitsUnchecked], [11, 0, 11, 0]);
  assert.ok((await pool.explain(id)).includes("done: 11 units computed by your own devices, not checked"));
  const page = await openPage(browser, `${site.url}/jobs/${id}#key=${site.key}`);
  await page.locator(".checking .facts", { hasText: "computed by your own devices, not checked" }).waitFor();
  assert.equal(await page.getByText(/confirmed|agreed|checked by another/i).count(), 0);
});

test("the playground's jobs are signed by the page's own key and checked as chosen", async (t) => {
  const context = await browser.newContext();
  t.after(() => context.close());
  const tab = await joinTab(context, front);
  await tab.joined();
  const page = await openPage(context, `${front.url}/playground#key=${front.key}`);
  await page.getByLabel("Check answers").selectOption("quorum:2");
  await page.getByRole("button", { name: "Run" }).click();
  const newest = async () => (await shoal.jobs()).sort((a, b) => b.id - a.id)[0];
  let last = await newest();
  while (last.id === job) last = await newest();
  const done = await shoal.wait(last.id);
  assert.deepEqual([done.verify, done.priority, done.signedHere], ["quorum:2", "interactive", false]);
  assert.notEqual(done.signedBy, await shoal.signer());
  assert.equal(done.unitsChecked, done.unitsDone);
});
