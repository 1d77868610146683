// Devices leave in the middle of a job: politely, by closing the tab, by dying. Nothing is lost.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { workerCount } from "../tests/lib/chromium.mjs";
import { folder } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { assertShared, execJob, mapJob } from "./lib/work.mjs";

async function machineAndTab(t) {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const guest = await tab(await browser(t), pool);
  return { pool, machine, guest };
}

/** Until the node holds leases of the job: only then does losing it mean anything. */
function busy(pool, node) {
  return until(`${node.name} to be at work`, async () =>
    (await pool.api.nodes()).find((other) => other.id === node.id && other.leases > 0),
  );
}

function gone(pool, node, seconds) {
  return until(`${node.name} to be gone`, async () =>
    (await pool.api.nodes()).every((other) => other.id !== node.id), seconds);
}

it("a tab is closed", async (t) => {
  const { pool, machine, guest } = await machineAndTab(t);
  const { id, check } = await mapJob(pool.api);
  await pool.api.underWay(id);
  await busy(pool, guest.node);
  await guest.page.close();
  await gone(pool, guest.node, 3);
  const job = await pool.api.done(id);
  assertShared(job, [machine.node]);
  check(await pool.api.result(id));
});

it("a native node is killed", async (t) => {
  const { pool, machine, guest } = await machineAndTab(t);
  const { id, check } = await mapJob(pool.api, { steps: 3000 });
  await pool.api.underWay(id);
  await busy(pool, machine.node);
  await kill(machine.child);
  await gone(pool, machine.node);
  const job = await pool.api.done(id);
  assertShared(job, [guest.node]);
  check(await pool.api.result(id));
});

it("a donor presses Stop", async (t) => {
  const { pool, machine, guest } = await machineAndTab(t);
  const { id, check } = await execJob(pool.api);
  await busy(pool, guest.node);
  await guest.page.getByRole("status").filter({ hasText: "at work" }).waitFor();
  assert.ok((await workerCount(guest.page)) > 0, "there are no Workers to end");
  await guest.page.getByRole("button", { name: "Stop now" }).click();
  await guest.page.getByRole("status").filter({ hasText: "Not lending" }).waitFor();
  await gone(pool, guest.node);
  // Counting Workers attaches to them, and one that is just being ended may stay listed for that: first let it end.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await until("the tab's Workers to end", async () => (await workerCount(guest.page)) === 0);
  // The other one takes over while the tab, still open, stays out of it.
  const job = await pool.api.done(id);
  assertShared(job, [machine.node]);
  check(await pool.api.result(id));
  assert.deepEqual((await pool.api.nodes()).map((node) => node.id), [machine.node.id]);
  assert.equal(await workerCount(guest.page), 0);
});
