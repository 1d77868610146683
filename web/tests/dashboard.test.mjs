/** The dashboard as whoever runs a pool sees it, under the policy that its pages have. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

let coordinator;
let front;
let browser;

before(async () => {
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

/** A page of the app in a context of its own, with what the browser complained about. */
async function open(t, path, options = {}) {
  const context = await browser.newContext(options);
  t.after(() => context.close());
  const page = await openPage(context, "about:blank");
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  if (options.prepare) await options.prepare(page);
  await page.goto(`${front.url}${path}#key=${front.key}`);
  return { page, complaints };
}

test("the join link is there to open and to scan", async (t) => {
  const { page, complaints } = await open(t, "/");
  const code = page.getByRole("img", { name: "QR code of the join link" });
  await code.waitFor();
  const drawn = await code.evaluate(async (image) => {
    await image.decode();
    return image.naturalWidth;
  });
  assert.ok(drawn > 0);
  assert.equal(await page.locator(".invite .link").getAttribute("href"), coordinator.joinLink);
  assert.deepEqual(complaints, []);
});

test("without its picture the join link still works", async (t) => {
  const prepare = (page) => page.route("**/api/v1/join.svg", (route) => route.abort());
  const { page } = await open(t, "/", { prepare });
  await page.locator(".invite .link").waitFor();
  await page.getByRole("button", { name: "Copy link" }).waitFor();
  assert.equal(await page.locator(".invite img").isVisible(), false);
});
