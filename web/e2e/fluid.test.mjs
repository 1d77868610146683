// Three tabs and a native node compute the fluid together; one tab dies in the middle; the field is the one that nobody
// disturbed. Then a tab and a native node alone, whose frames leave the relay alone once they reach each other.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { folder, ROOT } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { Hopeless, until } from "./lib/until.mjs";

const source = readFileSync(join(ROOT, "examples/kernels/fluid.wgsl"), "utf8");
const GRID = { width: 96, height: 128 };
/** Steps of which each has two halos. */
const STRETCH = 20;

const fluid = (pool, members, steps, more = {}) =>
  pool.api.submit({ kind: "sim", name: "fluid", source, ...GRID, steps, members, ...more });

/** The job once its crew has done so many steps, while it still runs. */
const atStep = (pool, id, step) =>
  until(`step ${step} of job ${id}`, async () => {
    const job = await pool.api.job(id);
    if (job.state !== "running") throw new Hopeless(`job ${id} is already ${job.state}`);
    return job.sim.step >= step && job;
  }, 120);

const relayed = async (pool) => (await pool.api.json("GET", "/api/v1/pool")).relay.bytes;

it("a crew of three tabs and a native node loses a tab and gives the undisturbed field", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const steps = 120;

  // What one member alone makes of it, undisturbed.
  const alone = await fluid(pool, 1, steps);
  await pool.api.done(alone.id, 180);
  const undisturbed = Buffer.from(await pool.api.result(alone.id));

  const chromium = await browser(t);
  const tabs = [await tab(chromium, pool), await tab(chromium, pool), await tab(chromium, pool)];
  const { id } = await fluid(pool, 4, steps, { keepEvery: 20 });
  const before = await atStep(pool, id, 40);
  const seated = before.sim.crew.members.map(({ node }) => node).sort((a, b) => a - b);
  assert.deepEqual(seated, [machine.node, ...tabs.map((one) => one.node)].map(({ id }) => id).sort((a, b) => a - b));

  // Somebody takes its place: four are wanted.
  const spare = await tab(chromium, pool);
  await crash(tabs[1].page);
  const job = await pool.api.done(id, 240);
  assert.ok(job.retries >= 1, "the crew was called anew");
  assert.ok(job.shares.some(({ node }) => node === spare.node.id), "the spare one has a share");
  assert.ok(!job.shares.some(({ node }) => node === tabs[1].node.id), "the dead one has none");
  const field = Buffer.from(await pool.api.result(id));
  assert.ok(field.equals(undisturbed), `the field differs in ${differences(field, undisturbed)} numbers`);
  const lines = await pool.api.explain(`jobs/${id}`);
  assert.ok(lines.some((line) => line.startsWith(`epoch 1: node ${tabs[1].node.id} `)), lines.join("\n"));
});

it("a tab and a native node talk directly: the relay carries nothing more", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  await native(t, pool, join(data, "node"));
  const chromium = await browser(t);
  await tab(chromium, pool);
  const { id } = await fluid(pool, 2, 100_000, { keepEvery: 0 });
  await until("direct links", async () => {
    const { sim } = await pool.api.job(id);
    const links = sim.crew?.members.flatMap((member) => member.links) ?? [];
    return links.length >= 2 && links.every(({ via }) => via === "direct");
  }, 120);
  // Every few seconds both look whether the relay is still there; between two looks it carries not one byte, while the
  // crew does dozens of steps.
  const halo = 16 * GRID.width * 24;
  await until(`${STRETCH} steps without a byte by relay`, async () => {
    const [bytes, { sim }] = [await relayed(pool), await pool.api.job(id)];
    const after = await atStep(pool, id, sim.step + STRETCH);
    const direct = after.sim.crew.members.flatMap((member) => member.links).map((link) => link.direct);
    assert.ok(Math.min(...direct) > STRETCH * halo, "halos went directly");
    return (await relayed(pool)) === bytes;
  }, 120);
  await pool.api.json("POST", `/api/v1/jobs/${id}/cancel`);
});

/** Its process ends at once; nobody says goodbye. */
async function crash(page) {
  const devtools = await page.context().newCDPSession(page);
  devtools.send("Page.crash").catch(() => undefined);
  await page.waitForEvent("crash");
}

function differences(a, b) {
  if (a.length !== b.length) return `${a.length} and ${b.length} bytes, so all`;
  let count = 0;
  for (let at = 0; at < a.length; at += 4) count += a.readUInt32LE(at) === b.readUInt32LE(at) ? 0 : 1;
  return count;
}
