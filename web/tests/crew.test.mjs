/** Tabs that compute together: a simulation over several gives the same bits as over one. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { after as windUp } from "./lib/after.mjs";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { startPool } from "./lib/pool.mjs";
import { joinTab } from "./lib/tab.mjs";

const SOURCE = readFileSync(new URL("../../examples/kernels/reaction-diffusion.wgsl", import.meta.url), "utf8");
const [WIDTH, HEIGHT, STEPS] = [96, 240, 60];
/** What only tabs in crews fetch. */
const LAZY = ["/assets/crew.js", "/assets/crew_bg.wasm", "/assets/radio.js"];

let coordinator;
let front;
let browser;
let shoal;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

async function joinTabs(count, where = {}) {
  const tabs = [];
  for (let at = 0; at < count; at++) {
    const tab = await joinTab(browser, front, { ...where, lend: { name: `tab ${at + 1}`, whenHidden: "go on" } });
    await tab.joined();
    tabs.push(tab);
  }
  const close = async () => {
    await Promise.all(tabs.map((tab) => tab.close()));
    await nodesOnce((nodes) => nodes.length === 0);
  };
  return { tabs, close };
}

/** So that no crew of the next test counts with them. */
async function nodesOnce(wanted) {
  for (let tries = 0; tries < 400; tries++) {
    if (wanted(await shoal.nodes())) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`the nodes did not become ${wanted}`);
}

const simulate = (more, run) =>
  shoal.sim({ source: SOURCE, width: WIDTH, height: HEIGHT, steps: STEPS, ...more }, run);

let alone;

test("a tab that only lends fetches nothing for crews", async (t) => {
  front.served.clear();
  const { tabs, close } = await joinTabs(1);
  t.after(close);
  await shoal.wait((await shoal.submit({ kind: "noop", items: 10 })).id);
  assert.deepEqual((await tabs[0].status()).crews, []);
  assert.ok(front.served.has("/assets/brain_bg.wasm"));
  assert.deepEqual(LAZY.filter((path) => front.served.has(path)), []);
});

test("one tab alone", async (t) => {
  const { close } = await joinTabs(1);
  t.after(close);
  alone = await simulate({ members: 1 });
  assert.equal(alone.length, WIDTH * HEIGHT * 2);
  assert.ok(LAZY.slice(0, 2).every((path) => front.served.has(path)));
});

const isSame = (found) => Buffer.from(found.buffer).equals(Buffer.from(alone.buffer));

test("three tabs together give the same bits", async (t) => {
  const { close } = await joinTabs(3);
  t.after(close);
  let last;
  const together = await simulate({ members: 3 }, { onProgress: (job) => (last = job) });
  assert.ok(isSame(together));
  assert.equal(last.sim.step, STEPS);
  assert.equal(new Set(last.shares.map(({ node }) => node)).size, 3, JSON.stringify(last.shares));
});

test("pages of another site compute together too", async (t) => {
  const site = await startPool();
  t.after(() => site.close());
  front.served.clear();
  const { tabs, close } = await joinTabs(2, { from: `${site.url}/blank` });
  t.after(close);
  assert.ok(isSame(await simulate({ members: 2 })));
  assert.ok(LAZY.every((path) => front.served.has(path)));
  assert.deepEqual((await Promise.all(tabs.map((tab) => tab.status()))).map(({ state }) => state), ["joined", "joined"]);
});

test("tabs find direct ways to each other, the donor sees them, hands stir the field", async (t) => {
  const { tabs, close } = await joinTabs(2);
  t.after(close);
  const request = { kind: "sim", source: SOURCE, width: WIDTH, height: HEIGHT, steps: 1_000_000, members: 2 };
  const job = await shoal.submit(request);
  const isDirect = ({ links }) => links.length === 1 && links[0].via === "direct" && links[0].roundTripMs > 0;
  for (const [rank, tab] of tabs.entries()) {
    const { crews } = await statusOnce(tab, ({ crews }) => crews.length === 1 && isDirect(crews[0]));
    const [{ job: of, members, rows, step }] = crews;
    assert.deepEqual([of, members, rows.len > 0, step > 0], [job.id, 2, true, true], `tab ${rank}`);
  }
  const first = await shoal.field(job.id);
  assert.deepEqual([first.width, first.height, first.pixels.length], [WIDTH, HEIGHT, WIDTH * HEIGHT * 4]);
  await shoal.poke(job.id, { at: [WIDTH / 2, HEIGHT / 2], by: [3, 0] });
  const next = await shoal.field(job.id, first.version);
  assert.ok(next.version > first.version && next.step >= first.step);
  await shoal.cancel(job.id);
  for (const tab of tabs) await statusOnce(tab, ({ crews }) => crews.length === 0);
});

test("a tab that dies in the middle is replaced, and the bits are the same", async (t) => {
  const { tabs, close } = await joinTabs(3);
  t.after(close);
  const killed = [];
  const together = await simulate(
    { members: 2, keepEvery: 5 },
    {
      onProgress: ({ sim }) => {
        if (killed.length > 0 || !(sim?.crew?.keptStep > 0)) return;
        const [, { name }] = sim.crew.members;
        killed.push(tabs[Number(name.slice(4)) - 1].close());
      },
    },
  );
  await Promise.all(killed);
  assert.equal(killed.length, 1);
  assert.ok(isSame(together));
});

test("the join page says what the device computes with others, and over which links", async (t) => {
  const { tabs, close } = await joinTabs(1);
  windUp(t, close);
  const page = await openPage(await browser.newContext(), front.joinLink);
  windUp(t, () => page.context().close());
  await page.getByRole("button", { name: "Lend this device" }).click();
  await nodesOnce((nodes) => nodes.filter(({ gpu }) => gpu).length === 2);
  const request = { kind: "sim", name: "spots", source: SOURCE, width: WIDTH, height: HEIGHT, steps: 1_000_000, members: 2 };
  const job = await shoal.submit(request);
  const row = page.locator(".crews li", { hasText: "spots" });
  await row.getByText(/^a simulation: rows \d+ to \d+, together with 1 other device$/).waitFor();
  const { node } = await tabs[0].status();
  await row.getByText(new RegExp(`^node ${node} (directly|through the coordinator), [\\d.]+ ms$`)).waitFor();
  await row.getByText(/^step [1-9]/).waitFor();
  await page.locator(".hero .status", { hasText: "Lending, at work" }).waitFor();
  if (process.env.SHOAL_SHOT) await page.screenshot({ path: process.env.SHOAL_SHOT, fullPage: true });
  await shoal.cancel(job.id);
  await row.waitFor({ state: "detached" });
});

async function statusOnce(tab, wanted) {
  for (let tries = 0; tries < 1000; tries++) {
    const status = await tab.status();
    if (wanted(status)) return status;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`the tab did not become ${wanted}: ${JSON.stringify((await tab.status()).crews)}`);
}
