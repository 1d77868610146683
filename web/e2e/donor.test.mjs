// A donor sees whose work runs, and says whose does not.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { folder } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { submitter } from "./lib/submitter.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { assertShared, MIX, mapJob } from "./lib/work.mjs";

it("a donor never runs work of a key, and others still do", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const { page, node } = await tab(await browser(t), pool);
  const [ada, bob] = [submitter(), submitter()];
  const submit = (who, name, owner, items = 1 << 19) =>
    mapJob(pool.api, { items, unit: 1 << 12, name, owner, verify: "none", signature: who.sign(MIX) });
  const row = ({ key }) => page.locator(".signers li", { hasText: `${key.slice(0, 8)}…` });
  const finish = async (job, nodes) => {
    const done = await pool.api.done(job.id);
    assertShared(done, nodes);
    job.check(await pool.api.result(job.id));
    return done;
  };
  /** A quick machine may leave a tab nothing of one job. */
  const shared = (...words) =>
    until("the tab to compute some of it", async () => {
      const { shares } = await finish(await submit(...words), [machine.node]);
      return shares.some((share) => share.node === node.id && share.items > 0);
    });

  await t.test("the page shows whose work it is", async () => {
    const job = await submit(ada, "waves", "Ada");
    await page.getByRole("status").filter({ hasText: "at work" }).waitFor();
    await row(ada).getByText("waves for Ada").waitFor();
    const done = await finish(job, [machine.node]);
    await shared(ada, "waves", "Ada");
    assert.deepEqual([done.signedBy, done.signedHere], [ada.key, false]);
  });

  await t.test("a key that is refused gets nothing here, and all of it elsewhere", async () => {
    await row(ada).getByRole("button", { name: "Never run work signed with this key" }).click();
    await row(ada).getByText("never runs here").waitFor();
    const done = await finish(await submit(ada, "more waves", "Ada"), [machine.node]);
    assert.ok(done.shares.every((share) => share.node !== node.id), "the tab ran it");
  });

  await t.test("another key's work runs", async () => {
    await shared(bob, "tides", "Bob");
    await row(bob).getByText("tides for Bob").waitFor();
    await row(bob).getByText("may run").waitFor();
  });

  await t.test("where nobody else is left it waits, and says why, until the donor thinks again", async () => {
    await kill(machine.child);
    const waiting = await submit(ada, "last waves", "Ada", 1 << 15);
    await finish(await submit(bob, "last tides", "Bob", 1 << 15), [node]);
    const job = await pool.api.job(waiting.id);
    assert.deepEqual([job.state, job.itemsDone], ["running", 0]);
    const words = (await pool.api.explain(`jobs/${waiting.id}`)).join("\n");
    t.diagnostic(words);
    assert.match(words, /key|donor|declin|refus/i);
    await row(ada).getByRole("button", { name: "Never run work signed with this key" }).click();
    await finish(waiting, [node]);
  });
});
