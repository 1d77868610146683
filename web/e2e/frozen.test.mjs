// A page that a phone puts to sleep in the middle of a simulation. Its Workers sleep too, so the whole member falls silent without a
// word; the others go on from the last checkpoint, and the field is the one that nobody disturbed. Awake again, it lends again.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { bareBrowser, bareTab } from "./lib/bare.mjs";
import { folder, ROOT } from "./lib/places.mjs";
import { serve } from "./lib/processes.mjs";
import { Hopeless, until } from "./lib/until.mjs";

const source = readFileSync(join(ROOT, "examples/kernels/reaction-diffusion.wgsl"), "utf8");
const sim = (pool, members, more = {}) =>
  pool.api.submit({ kind: "sim", name: "spots", source, width: 96, height: 128, steps: 400, members, ...more });

const checkpoint = (pool, id) =>
  until("a checkpoint", async () => {
    const job = await pool.api.job(id);
    if (job.state !== "running") throw new Hopeless(`job ${id} is already ${job.state}`);
    return job.sim.crew?.keptStep > 0 && job.sim;
  }, 120);

it("a member whose page is frozen is left behind, and the field is the undisturbed one", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const chromium = await bareBrowser(t);
  // It goes on when it is hidden, so that nothing but the frost keeps it from computing.
  const tabs = [];
  for (let at = 0; at < 3; at++) tabs.push(await bareTab(chromium, pool, { whenHidden: "go on" }));

  const alone = await sim(pool, 1);
  await pool.api.done(alone.id, 180);
  const undisturbed = Buffer.from(await pool.api.result(alone.id));

  const { id } = await sim(pool, 2, { keepEvery: 20 });
  const { crew } = await checkpoint(pool, id);
  const frozen = tabs.find(({ node }) => node.id === crew.members[1].node);
  await frozen.page.freeze();
  const job = await pool.api.done(id, 240);
  assert.ok(job.retries >= 1, "the crew was called anew");
  assert.ok(!job.shares.some(({ node }) => node === frozen.node.id), "who slept has no share");
  assert.ok(Buffer.from(await pool.api.result(id)).equals(undisturbed), "the field differs");
  const lines = await pool.api.explain(`jobs/${id}`);
  assert.ok(lines.some((line) => line.startsWith(`epoch 1: node ${frozen.node.id} `)), lines.join("\n"));

  await frozen.page.thaw();
  const again = await sim(pool, 3);
  await pool.api.done(again.id, 180);
  assert.ok(Buffer.from(await pool.api.result(again.id)).equals(undisturbed), "awake, it computes with the others again");
});

it("a member whose page stands still while its Workers live goes on", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const chromium = await bareBrowser(t);
  const tabs = [await bareTab(chromium, pool), await bareTab(chromium, pool)];
  const { id } = await sim(pool, 2, { keepEvery: 20, steps: 100_000 });
  const { step } = await checkpoint(pool, id);
  await tabs[0].page.evaluate(notePauses);
  await tabs[0].page.halt();
  const halted = Date.now();
  const members = tabs.map(({ node }) => node.id).sort((a, b) => a - b);
  await until("dozens of steps without the page", async () => {
    const { sim, state } = await pool.api.job(id);
    if (state !== "running") throw new Hopeless(`job ${id} is already ${state}`);
    const crew = sim.crew?.members.map(({ node }) => node).sort((a, b) => a - b);
    return sim.step > step + 200 && crew.join() === members.join();
  }, 120);
  const standing = Date.now() - halted;
  await tabs[0].page.go();
  await until("the page to see how long it stood still", () => tabs[0].page.evaluate((least) => globalThis.pause > least, standing / 2));
  await pool.api.json("POST", `/api/v1/jobs/${id}/cancel`);
});

/** In the page: notes the longest time in which its thread did nothing. */
function notePauses() {
  globalThis.pause = 0;
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    globalThis.pause = Math.max(globalThis.pause, now - last);
    last = now;
  }, 20);
}
