/** A tab that lends its device through the SDK, without the join page. */

import { openPage } from "./chromium.mjs";

/** `from`: an address whose page is used (any site); `assets`: where the SDK is, the coordinator's without it. */
export async function joinTab(browser, coordinator, { from, assets, lend = {} } = {}) {
  const page = await openPage(browser, from ?? `${coordinator.url}/join`);
  await page.evaluate(
    async ({ url, token, assets, lend }) => {
      const { join } = await import(`${assets ?? `${url}/assets`}/sdk.js`);
      const seen = { units: [], refused: [] };
      const handle = await join({
        url,
        token,
        ...(assets ? { assets } : {}),
        ...lend,
        onStatus: (status) => (seen.status = status),
        onUnit: (event) => seen.units.push(event),
        onRefused: (...told) => seen.refused.push(told),
      });
      globalThis.shoalTab = { handle, seen };
    },
    { url: coordinator.url, token: coordinator.token, assets, lend },
  );
  const state = () => page.evaluate(() => globalThis.shoalTab.handle.status);
  return {
    page,
    status: state,
    units: () => page.evaluate(() => globalThis.shoalTab.seen.units),
    stop: () => page.evaluate(() => globalThis.shoalTab.handle.stop()),
    set: (lend) => page.evaluate((lend) => globalThis.shoalTab.handle.set(lend), lend),
    joined: () =>
      page.waitForFunction(() => globalThis.shoalTab.handle.status.state === "joined", null, {
        timeout: 15_000,
      }),
    close: () => page.close(),
  };
}
