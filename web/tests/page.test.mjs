/** The join page as a donor uses it, by keyboard where it matters. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

let coordinator;
let front;
let browser;
let shoal;
let page;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  page = await openPage(await browser.newContext(), front.joinLink);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

const lend = () => page.getByRole("button", { name: "Lend this device" }).click();
const status = (words) => page.locator(".hero .status", { hasText: words }).waitFor();
const items = (from) => `
  @group(0) @binding(0) var<storage, read_write> output: array<u32>;
  @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) { output[id.x] = ${from}u + id.x; }
  }`;

test("the page shows whose work runs, and a key is refused and taken back by keyboard", async () => {
  await lend();
  await status("Lending");
  await shoal.map({ wgsl: items(1), items: 64, name: "count", owner: "Ada" });
  const key = await shoal.signer();
  const row = page.locator(".signers li", { hasText: `${key.slice(0, 8)}…` });
  await row.getByText("count for Ada").waitFor();
  await page.getByText(`signed with the key ${key.slice(0, 8)}`).first().waitFor({ state: "attached" });

  const never = row.getByRole("button", { name: "Never run work signed with this key" });
  await never.focus();
  await page.keyboard.press("Enter");
  await row.getByText("never runs here").waitFor();
  assert.equal(await never.getAttribute("aria-pressed"), "true");
  const job = await shoal.submit({ kind: "map", wgsl: items(2), inputs: [], items: 64, name: "more" });
  // Somebody else's goes by it.
  const other = await connect(coordinator.url, coordinator.key, { signer: null });
  await other.map({ wgsl: items(3), items: 64, name: "unsigned" });
  assert.equal((await shoal.job(job.id)).itemsDone, 0);
  await page.locator(".signers li small:not([hidden])", { hasText: "the coordinator's own key" }).waitFor();

  await page.reload();
  await row.getByText("never runs here").waitFor();
  await lend();
  await status("Lending");
  await never.focus();
  await page.keyboard.press("Space");
  await row.getByText("may run").waitFor();
  await shoal.wait(job.id);
});

test("only named keys run, and a key that is none is said so", async () => {
  await page.getByText("Enter a key").click();
  await page.getByLabel("Public key").fill("not a key");
  await page.locator(".add-key").getByRole("button", { name: "Only these" }).click();
  await page.getByText("A key has 64 characters").waitFor();
  const key = "ab".repeat(32);
  await page.getByLabel("Public key").fill(key);
  await page.locator(".add-key").getByRole("button", { name: "Only these" }).click();
  await page.getByText("Only work signed with the keys you allowed").waitFor();
  const job = await shoal.submit({ kind: "map", wgsl: items(4), inputs: [], items: 64 });
  await shoal.wait((await shoal.submit({ kind: "noop", items: 3 })).id);
  assert.equal((await shoal.job(job.id)).itemsDone, 0);
  const row = page.locator(".signers li", { hasText: key.slice(0, 8) });
  await row.getByRole("button", { name: /Only these keys/ }).click();
  await row.waitFor({ state: "detached" });
  await shoal.wait(job.id);
});

test("the memory that is lent can be chosen", async () => {
  const slider = page.getByLabel("Memory", { exact: true });
  await slider.fill(String(2 ** 29));
  await page.getByText(/^at most 512 MiB/).waitFor();
  const kept = await page.evaluate(() => JSON.parse(localStorage.getItem("shoal.lend")));
  assert.equal(kept.memory, 2 ** 29);
});

test("the power saver can be switched", async () => {
  const low = page.getByRole("switch", { name: /battery is below 30/ });
  assert.equal(await low.isChecked(), true);
  await low.uncheck();
  const hidden = page.getByLabel("When this tab is in the background");
  assert.equal(await hidden.inputValue(), "pause");
  await hidden.selectOption("go on");
  const kept = await page.evaluate(() => JSON.parse(localStorage.getItem("shoal.lend")));
  assert.deepEqual([kept.onLowBattery, kept.whenHidden], ["go on", "go on"]);
});
