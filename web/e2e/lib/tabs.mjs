// Browser tabs that lend themselves by the join page, as a person would make them do it.

import { chromium } from "playwright-core";

import { after } from "../../tests/lib/after.mjs";
import { chromiumPath, endable, launch, openPage } from "../../tests/lib/chromium.mjs";
import { until } from "./until.mjs";

/** A browser that goes with its test. */
export async function browser(t, options = {}) {
  const browser = await launch(options);
  after(t, () => browser.close());
  return browser;
}

/** A browser as it comes, which on a machine without a GPU finds none. */
export async function browserWithoutGpu(t) {
  const browser = endable(await chromium.launch({ executablePath: chromiumPath(), args: ["--no-sandbox"] }));
  after(t, () => browser.close());
  return browser;
}

/** Opens the join link in a profile of its own: what another device would be. */
export async function openJoin(browser, link) {
  const context = await browser.newContext();
  return openPage(context, link);
}

/** A tab that lends; seen by the coordinator when this returns. */
export async function tab(browser, pool) {
  const before = new Set((await pool.api.nodes()).map((node) => node.id));
  const page = await openJoin(browser, pool.join);
  await page.getByRole("button", { name: "Lend this device" }).click();
  const node = await until("the tab to join", async () =>
    (await pool.api.nodes()).find((node) => node.kind === "browser" && !before.has(node.id)),
  );
  return { page, node };
}
