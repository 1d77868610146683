/** A native application in the place of one of the two pages of docs/gpu-p2p.md. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test, after as afterAll } from "node:test";

import { after } from "./lib/after.mjs";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { DOCS, startDocsSite } from "./lib/docs-site.mjs";
import { startFront } from "./lib/front.mjs";

const ROOT = new URL("../../", import.meta.url);
const SHARE = process.env.SHOAL_SHARE ?? new URL("target/release/examples/share", ROOT).pathname;

let coordinator;
let front;
let site;
let browser;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  site = await startDocsSite(front);
});

afterAll(async () => {
  await browser?.close();
  await site?.close();
  await front?.close();
  await coordinator?.close();
});

/** The example as its documentation starts it. `said(pattern)` waits until it says so. */
function share(t, ...words) {
  const data = mkdtempSync(join(tmpdir(), "shoal-share-"));
  after(t, () => rmSync(data, { recursive: true, force: true }));
  const link = `${front.url}/join#${front.token}`;
  const child = spawn(SHARE, [link, ...words], { env: { ...process.env, SHOAL_DATA: data }, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  after(t, async () => {
    child.kill("SIGKILL");
    await ended;
  });
  let text = "";
  let look = () => undefined;
  child.stderr.on("data", (more) => {
    text += more;
    look();
  });
  const said = (pattern) =>
    new Promise((resolve, reject) => {
      look = () => pattern.test(text) && resolve(text.match(pattern));
      look();
      void ended.then(() => reject(new Error(`it ended without ${pattern}: ${text}`)));
    });
  return { said, ended };
}

test("the documentation prints the example", () => {
  const code = readFileSync(new URL("crates/app/examples/share.rs", ROOT), "utf8");
  const printed = DOCS.match(/^```rust\n([^]*?)^```/m)?.[1];
  assert.ok(printed && code.endsWith(printed), "the block of Rust is not the end of examples/share.rs");
});

test("a page computes over a native application's buffer", async (t) => {
  const app = share(t);
  const [, node] = await app.said(/Waiting as node (\d+)/);
  const page = await openPage(browser, `${site.url}/two.html#${node}`);
  await page.getByText(`Wrote version 2 to node ${node}`).waitFor();
  await app.said(/Version 2: \[0\.0, 1\.0, 4\.0, 9\.0\]/);
  assert.equal(await app.ended, 0);
});

test("a native application computes over a page's buffer", async (t) => {
  const page = await openPage(browser, `${site.url}/one.html`);
  const link = await page.locator("a").getAttribute("href");
  const app = share(t, link.split("#")[1]);
  await app.said(/Wrote version 2 to node \d+/);
  await page.getByText("Version 2: 0, 1, 4, 9").waitFor();
  assert.equal(await app.ended, 0);
});
