// The coordinator is killed in the middle of jobs and started again: it goes on where it was.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { folder } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { assertShared, execJob, mapJob } from "./lib/work.mjs";

it("the coordinator is killed and started again", async (t) => {
  const data = folder(t);
  const place = join(data, "pool");
  let pool = await serve(t, place);
  const machine = await native(t, pool, join(data, "node"));
  const chromium = await browser(t);
  const tabs = [await tab(chromium, pool), await tab(chromium, pool)];
  const map = await mapJob(pool.api);
  const exec = await execJob(pool.api, { lines: 600 });
  const before = [await pool.api.underWay(map.id, 0.2), await pool.api.underWay(exec.id, 0.05)];

  await kill(pool.child);
  pool = await serve(t, place, pool.port);

  for (const old of before) {
    const now = await pool.api.job(old.id);
    assert.ok(now.itemsDone >= old.itemsDone, `job ${old.id} forgot what was done`);
  }
  const everyone = [machine.node, ...tabs.map((tab) => tab.node)];
  const [mapped, ran] = [await pool.api.done(map.id), await pool.api.done(exec.id)];
  assertShared(mapped, everyone);
  assertShared(ran, everyone);
  map.check(await pool.api.result(map.id));
  exec.check(await pool.api.result(exec.id));
  assert.equal((await pool.api.nodes()).length, everyone.length, "all came back, none twice");
});
