// Tabs are hidden, frozen and crash in the middle of jobs, by the DevTools protocol (see lib/bare.mjs for what that emulates).
// Each time the job ends with the right result.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { after } from "../tests/lib/after.mjs";
import { bareBrowser, bareTab } from "./lib/bare.mjs";
import { folder } from "./lib/places.mjs";
import { serve } from "./lib/processes.mjs";
import { stranger } from "./lib/stranger.mjs";
import { until } from "./lib/until.mjs";
import { assertShared, assertWhole, mapJob } from "./lib/work.mjs";

/** Several seconds of a software GPU, so that no tab is done before something happens to it. */
const SIZE = { items: 1 << 16, steps: 12_000, unit: 1 << 11 };

/** What the coordinator says of a node, once it is so. */
function seen(pool, { id }, what, wanted) {
  return until(`the tab to be ${what}`, async () => {
    const node = await pool.api.node(id);
    return node && wanted(node) && node;
  });
}

const busy = (pool, node) => seen(pool, node, "at work", ({ leases }) => leases > 0);
const resting = (pool, node) => seen(pool, node, "resting", ({ leases, paused }) => paused && leases === 0);
const share = (job, { id }) => job.shares.find(({ node }) => node === id)?.items ?? 0;

it("tabs hide, freeze and crash", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const chromium = await bareBrowser(t);
  // Takes over whenever it is shown; out of sight it rests.
  const helper = await bareTab(chromium, pool);
  await helper.page.hide();
  await resting(pool, helper.node);

  /** A job that only this tab works at, so that what becomes of its units can be seen. */
  const atWork = async (t, options) => {
    const one = await bareTab(chromium, pool, options);
    after(t, () => one.page.close());
    const job = await mapJob(pool.api, { ...SIZE, verify: "none" });
    await pool.api.underWay(job.id, 0.02);
    await busy(pool, one.node);
    return { ...one, job };
  };
  const takeOver = async (t) => {
    await helper.page.show();
    after(t, async () => {
      await helper.page.hide();
      await resting(pool, helper.node);
    });
  };

  await t.test("a hidden tab hands back what it has not begun, and rests", async (t) => {
    const { page, node, job } = await atWork(t);
    await page.hide();
    const { condition } = await resting(pool, node);
    assert.equal(condition.visible, false);
    const left = await pool.api.job(job.id);
    assert.equal(left.state, "running", "nobody was there to finish it");
    assert.equal(left.itemsLeased, 0, "something was kept");
    assert.match((await pool.api.explain(`nodes/${node.id}`)).join("\n"), /hidden|paus|rest/i);
    await takeOver(t);
    const done = await pool.api.done(job.id);
    assertShared(done, [helper.node]);
    assert.equal(share(done, node), share(left, node), "the hidden tab went on");
    job.check(await pool.api.result(job.id));
    // Back in sight it lends again.
    await page.show();
    await seen(pool, node, "back", ({ paused, condition }) => !paused && condition.visible);
  });

  await t.test("a hidden tab whose donor wants it so goes on", async (t) => {
    const { page, node, job } = await atWork(t, { whenHidden: "go on" });
    await page.hide();
    const hidden = await seen(pool, node, "hidden", ({ condition }) => !condition.visible);
    assert.equal(hidden.paused, false);
    const done = await pool.api.done(job.id);
    assert.equal(share(done, node), done.items);
    job.check(await pool.api.result(job.id));
  });

  await t.test("a frozen tab's units go to others, and thawed it is the same node", async (t) => {
    const { page, node, job } = await atWork(t, { whenHidden: "go on" });
    await page.freeze();
    await takeOver(t);
    const done = await pool.api.done(job.id);
    assertShared(done, [node, helper.node]);
    const result = await pool.api.result(job.id);
    job.check(result);

    await page.thaw();
    await seen(pool, node, "back", ({ paused, condition }) => !paused && condition.visible);
    // It says now what it had in hand: nobody minds. The other one rests, so that there is something to do.
    await helper.page.hide();
    await resting(pool, helper.node);
    const next = await mapJob(pool.api, { ...SIZE, steps: 1000, verify: "none" });
    const [after, nextDone] = [await pool.api.job(job.id), await pool.api.done(next.id)];
    assert.ok(share(nextDone, node) > 0, "the thawed tab does nothing");
    next.check(await pool.api.result(next.id));
    assert.deepEqual([after.state, after.shares], ["done", done.shares]);
    assert.ok(Buffer.from(await pool.api.result(job.id)).equals(Buffer.from(result)), "the result changed");
  });

  await t.test("a tab finishes what a device that is late holds, and does not wait for it", async (t) => {
    // Emulated by a program that says it lives, and answers only when nobody waits any more.
    let release;
    const released = new Promise((resolve) => (release = resolve));
    const late = await stranger(t, pool, { name: "late", answer: (_job, { len }) => released.then(() => Buffer.alloc(4 * len)) });
    // Soon at its end: what is held for long is taken away, and then there is no second copy.
    const job = await mapJob(pool.api, { ...SIZE, steps: 3000, verify: "none", limits: { seconds: 600 } });
    await busy(pool, late.node);
    await takeOver(t);
    const done = await pool.api.done(job.id);
    assert.ok(done.speculated > 0, "nobody got a second copy");
    assert.equal(share(done, helper.node), done.items);
    job.check(await pool.api.result(job.id));
    release();
    await until("it to answer at last", () => late.answered > 0);
    assert.match((await pool.api.explain(`jobs/${job.id}`)).join("\n"), /second|copy|copies|late/i);
    job.check(await pool.api.result(job.id));
  });

  await t.test("a crashed tab is gone at once", async (t) => {
    const { page, node, job } = await atWork(t);
    page.crash();
    await until("the tab to be gone", async () => !(await pool.api.node(node.id)), 3);
    const left = await pool.api.job(job.id);
    assert.equal(left.itemsLeased, 0, "its units were kept");
    await takeOver(t);
    const done = await pool.api.done(job.id);
    assertShared(done, [helper.node]);
    assertWhole(done);
    job.check(await pool.api.result(job.id));
  });
});
