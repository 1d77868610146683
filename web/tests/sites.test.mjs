/** Any site may use the SDK: a page of another origin joins, uploads and submits. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { startPool } from "./lib/pool.mjs";
import { joinTab } from "./lib/tab.mjs";

let coordinator;
let front;
let site;
let browser;

before(async () => {
  [coordinator, site, browser] = await Promise.all([startCoordinator(), startPool(), launch()]);
  front = await startFront(coordinator);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
  await site?.close();
});

test("a page of another site lends and submits", async () => {
  // The Workers come from the coordinator's origin, which is not the page's.
  const tab = await joinTab(browser, front, { from: `${site.url}/blank` });
  await tab.joined();
  const sum = await tab.page.evaluate(
    async ({ url, key }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      const shoal = await connect(url, key);
      const wgsl = `
        @group(0) @binding(0) var<storage, read> input: array<u32>;
        @group(0) @binding(1) var<storage, read_write> output: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
          if (id.x >= arrayLength(&output)) { return; }
          output[id.x] = input[id.x] + 1u;
        }`;
      const input = new Uint32Array(100_000).map((_, i) => i);
      const out = await shoal.map({ wgsl, input, out: "u32" });
      return out.reduce((sum, value) => sum + value, 0);
    },
    { url: front.url, key: front.key },
  );
  assert.equal(sum, (100_000 * 100_001) / 2);
  const units = await tab.units();
  assert.ok(units.some(({ type, unit }) => type === "finished" && unit.kind === "map"));
  await tab.close();
});

test("a large upload resumes and is sent only once", async () => {
  const page = await openPage(browser, `${site.url}/blank`);
  const found = await page.evaluate(
    async ({ url, key }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      const shoal = await connect(url, key);
      const bytes = new Uint8Array(40 << 20).map((_, i) => (i * 31) >> 8);
      const stop = new AbortController();
      const seen = [];
      const first = await shoal
        .upload(bytes, {
          signal: stop.signal,
          onProgress: (sent) => {
            seen.push(sent);
            if (sent > 0) stop.abort();
          },
        })
        .catch((error) => error.name);
      const again = [];
      const { hash, size } = await shoal.upload(bytes, { onProgress: (sent) => again.push(sent) });
      const third = [];
      await shoal.upload(bytes, { onProgress: (sent) => third.push(sent) });
      const stored = new Uint8Array(await (await shoal.blob(hash)).arrayBuffer());
      const same = stored.length === bytes.length && stored.every((byte, i) => byte === bytes[i]);
      return { first, seen, again, third, size, same };
    },
    { url: front.url, key: front.key },
  );
  assert.equal(found.first, "AbortError");
  assert.ok(found.again[0] >= 16 << 20, `went on at ${found.again[0]}`);
  assert.deepEqual(found.third, [40 << 20], "the third time nothing was sent");
  assert.equal(found.size, 40 << 20);
  assert.ok(found.same);
  await page.close();
});

test("a wrong token is said in words", async () => {
  const tab = await joinTab(browser, { ...front, token: "nonsense" });
  await tab.page.waitForFunction(() => globalThis.shoalTab.handle.status.state === "stopped");
  const { reason } = await tab.status();
  assert.match(reason, /token is wrong/);
  await tab.close();
});

test("a browser without WebGPU joins with programs only and says so", async () => {
  const page = await openPage(browser, `${front.url}/join`);
  const status = await page.evaluate(
    async ({ url, token }) => {
      Object.defineProperty(Navigator.prototype, "gpu", { value: undefined });
      delete Navigator.prototype.gpu;
      const { join } = await import(`${url}/assets/sdk.js`);
      const handle = await join({ url, token });
      while (handle.status.state !== "joined") await new Promise((resolve) => setTimeout(resolve, 20));
      return handle.status;
    },
    { url: front.url, token: front.token },
  );
  assert.match(status.gpuProblem, /no WebGPU/);
  assert.equal(status.lent.gpu, false);
  assert.ok(status.lent.cpuSlots > 0);
  await page.close();
});
