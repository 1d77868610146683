// Two tabs and a native node finish one map, one render and one exec job together.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { saveNpy } from "./lib/npy.mjs";
import { folder } from "./lib/places.mjs";
import { kill, native, serve, start } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { assertAlike, assertShared, assertWhole, execJob, mapJob, renderJob } from "./lib/work.mjs";

it("two tabs and a native node compute together", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));

  // Enough of it that the machine has not done all before a tab has begun.
  const picture = { samples: 96 };
  const alone = await renderJob(pool.api, picture);
  await pool.api.done(alone.id);
  const reference = await pool.api.result(alone.id);

  const chromium = await browser(t);
  const tabs = [await tab(chromium, pool), await tab(chromium, pool)];
  const nodes = [machine.node, ...tabs.map((tab) => tab.node)];

  // Unchecked: where a few strangers check each other, whoever only confirms has no share.
  const verify = "none";
  await t.test("map", async () => {
    const { id, check } = await mapJob(pool.api, { verify });
    assertShared(await pool.api.done(id), nodes);
    check(await pool.api.result(id));
  });

  await t.test("render", async () => {
    const { id } = await renderJob(pool.api, { ...picture, verify });
    assertShared(await pool.api.done(id), nodes);
    assertAlike(await pool.api.result(id), reference);
  });

  await t.test("exec", async () => {
    const { id, check } = await execJob(pool.api, { verify });
    assertShared(await pool.api.done(id), nodes);
    check(await pool.api.result(id));
  });

  // The example kind of CONTRIBUTING.md. Its units are over in no time: the machine would do them all.
  await t.test("count, on the tabs alone", async () => {
    await kill(machine.child);
    const numbers = Uint32Array.from({ length: 1 << 20 }, (_, i) => i % 1000);
    const file = join(data, "numbers.npy");
    saveNpy(file, numbers);
    const words = ["count", file, "--value", "7", "--unit", "64", "--verify", verify, "--json"];
    const client = start(t, [...words, "--url", pool.url, "--key", pool.key]);
    const { code } = await client.ended;
    assert.equal(code, 0, client.said);
    const { job, count } = JSON.parse(client.printed);
    assert.equal(count, numbers.filter((number) => number === 7).length);
    assertWhole(job);
  });
});
