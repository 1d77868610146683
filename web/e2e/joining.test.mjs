// Browsers and links that are not as they should be.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { after } from "../tests/lib/after.mjs";
import { counted } from "./lib/counted.mjs";
import { folder, KERNELS } from "./lib/places.mjs";
import { serve, start } from "./lib/processes.mjs";
import { browser, browserWithoutGpu, openJoin, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { assertShared, execJob } from "./lib/work.mjs";

it("a browser without WebGPU joins with Wasm only, and its page says so", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const { page, node } = await tab(await browserWithoutGpu(t), pool);
  const notice = await page.getByText("no GPU kernels").innerText();
  assert.match(notice, /WebGPU/);
  assert.equal(node.gpu, null);
  assert.ok(node.cpuSlots > 0, "it offers no CPU either");
  const { id, check } = await execJob(pool.api, { lines: 20, least: 100_000 });
  assertShared(await pool.api.done(id), [node]);
  check(await pool.api.result(id));
});

it("a tab fetches less than 300 KB until its first unit is finished", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const { wire, through, close } = await counted(pool.url);
  after(t, close);
  const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");
  const blob = await pool.api.blob(new Uint8Array(new Float32Array(1024).buffer));
  const job = await pool.api.submit({ kind: "map", wgsl, inputs: [{ blob }] });
  const page = await openJoin(await browser(t), through(pool.join));
  await page.getByRole("button", { name: "Lend this device" }).click();
  await until("the first unit", async () => (await pool.api.job(job.id)).unitsDone > 0);
  assert.ok(wire.down > 100_000 && wire.down < 300_000, `${wire.down} bytes came`);
});

it("a wrong token is refused in words", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const page = await openJoin(await browser(t), `${pool.url}/join#wrong`);
  await page.getByRole("button", { name: "Lend this device" }).click();
  const alert = await page.getByRole("alert").innerText();
  assert.match(alert, /token/);
  assert.deepEqual(await pool.api.nodes(), []);
});

it("a link without its token cannot be used", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const page = await openJoin(await browser(t), `${pool.url}/join`);
  assert.match(await page.getByRole("alert").innerText(), /incomplete/);
  assert.ok(await page.getByRole("button", { name: "Lend this device" }).isDisabled());
});

it("a native node with a wrong token ends with a reason", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const child = start(t, ["join", `${pool.url}/join#wrong`, "--data", join(data, "node")]);
  const { code } = await child.ended;
  assert.notEqual(code, 0);
  assert.match(child.said, /token/);
});
