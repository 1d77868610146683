// Somebody between a tab and its coordinator changes one byte of the code. The tab refuses it, and no result is wrong.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";

import { between } from "./lib/between.mjs";
import { knownExec, knownMap } from "./lib/known.mjs";
import { folder } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";

it("changed code is refused by the tab", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const [map, exec] = [knownMap(), knownExec()];
  let [changed, module] = [0, ""];
  const evil = await between(t, pool, {
    frames: (bytes) => {
      const text = bytes.toString("latin1");
      changed += Number(text.includes("1664525u"));
      return Buffer.from(text.replaceAll("1664525u", "1664527u"), "latin1");
    },
    blob: (hash, bytes) => {
      if (hash !== module) return bytes;
      changed += 1;
      bytes[bytes.length >> 1] ^= 1;
      return bytes;
    },
  });
  const chromium = await browser(t);
  const { page, node } = await tab(chromium, evil);
  const ended = (id) => until(`the end of job ${id}`, async () => {
    const job = await pool.api.job(id);
    return job.state !== "running" && job;
  });
  const did = (job) => job.shares.find((share) => share.node === node.id)?.items ?? 0;

  await t.test("a kernel, with nobody else there", async () => {
    const { id } = await map.submit(pool.api, { name: "a changed kernel" });
    const job = await ended(id);
    assert.equal(job.state, "failed");
    assert.match(job.error.message, /the code was refused: it is not what the key [0-9a-f]{64} signed/);
    assert.deepEqual([did(job), changed > 0], [0, true]);
    await page.getByText("a changed kernel").first().waitFor();
  });

  await t.test("a program, with nobody else there", async () => {
    changed = 0;
    const { id } = await exec.submit(pool.api, { name: "a changed program" });
    module = await pool.api.blob(exec.code);
    const job = await ended(id);
    assert.equal(job.state, "failed");
    t.diagnostic(job.error.message);
    assert.match(job.error.message, new RegExp(`blob ${module}: other bytes came`));
    assert.deepEqual([did(job), changed > 0], [0, true]);
  });

  const machine = await native(t, pool, join(data, "node"));
  for (const [what, known] of Object.entries({ kernel: map, program: exec })) {
    await t.test(`a ${what}, with an honest node there`, async () => {
      changed = 0;
      // The first one has failed too often to be given much.
      await tab(chromium, evil);
      const { id } = await known.submit(pool.api, { name: `the ${what} again` });
      const job = await pool.api.done(id);
      assert.deepEqual(job.shares.map((share) => share.node), [machine.node.id]);
      known.check(await pool.api.result(id));
      assert.ok(changed > 0, "nothing was changed");
    });
  }
});
