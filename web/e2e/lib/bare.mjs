// A Chromium without Playwright, which keeps every page "seen" whatever happens to it. Here pages really hide, freeze and crash.
//
// What is real and what is emulated, as Chromium 156 does it without a screen: a minimised window's page hides and fires
// `visibilitychange` like on a desk, but nothing slows its timers or its Workers. `Page.setWebLifecycleState` hides and then
// freezes it, with both events, and its Workers stand still too, like a page that a phone put to sleep; thawing fires `resume`.
// A debugger halts a page's own thread and leaves its Workers alone. `Page.crash` ends the renderer's process. CPU throttling does not reach Workers, so nobody is slowed by it here.

import { spawn } from "node:child_process";
import { join } from "node:path";

import { after } from "../../tests/lib/after.mjs";
import { chromiumPath, FLAGS } from "../../tests/lib/chromium.mjs";
import { talk } from "../../tests/lib/devtools.mjs";
import { folder } from "./places.mjs";
import { until } from "./until.mjs";

/** A browser that goes with its test. */
export async function bareBrowser(t) {
  const words = ["--headless", "--remote-debugging-pipe", `--user-data-dir=${join(folder(t), "profile")}`, ...FLAGS];
  const child = spawn(chromiumPath(), words, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ask = talk(child.stdio[3], child.stdio[4]);
  after(t, async () => {
    process.kill(-child.pid, "SIGKILL");
    await ended;
  });
  return { open: (url) => openPage(ask, url) };
}

/** A tab of its own profile and window that lends; seen by the coordinator when this returns. */
export async function bareTab(browser, pool, { whenHidden = "pause" } = {}) {
  const before = new Set((await pool.api.nodes()).map((node) => node.id));
  const page = await browser.open(pool.join);
  await page.evaluate((value) => {
    const select = [...document.querySelectorAll("select")].find((each) => each.labels[0].textContent.includes("in the background"));
    select.value = value;
    select.dispatchEvent(new Event("change"));
    [...document.querySelectorAll("button")].find((each) => each.textContent === "Lend this device").click();
  }, whenHidden);
  const node = await until("the tab to join", async () =>
    (await pool.api.nodes()).find((node) => node.kind === "browser" && node.gpu && !before.has(node.id)),
  );
  return { page, node };
}

async function openPage(ask, url) {
  const { browserContextId } = await ask("Target.createBrowserContext");
  const { targetId } = await ask("Target.createTarget", { url: "about:blank", browserContextId, newWindow: true });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params = {}) => ask(method, params, sessionId);
  const evaluate = async (fn, arg) => {
    const expression = `(${fn})(${arg === undefined ? "" : JSON.stringify(arg)})`;
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const window = async (windowState) => {
    const { windowId } = await send("Browser.getWindowForTarget");
    await send("Browser.setWindowBounds", { windowId, bounds: { windowState } });
  };
  const lifecycle = (state) => send("Page.setWebLifecycleState", { state });
  await send("Page.navigate", { url });
  await until(`${url} to be there`, () => evaluate(() => document.querySelector("button") && document.readyState === "complete"));
  return {
    evaluate,
    hide: () => window("minimized"),
    show: () => window("normal"),
    freeze: () => lifecycle("frozen"),
    /** In sight again: to its window, which knows nothing of all this, nothing happened. */
    thaw: async () => {
      await lifecycle("active");
      await window("minimized");
      await window("normal");
    },
    /** The page's own thread stands still, as in a debugger; its Workers go on. */
    halt: async () => {
      await send("Debugger.enable");
      await send("Debugger.pause");
      void send("Runtime.evaluate", { expression: "0" }).catch(() => undefined);
    },
    go: () => send("Debugger.disable"),
    /** Nobody is left to answer. */
    crash: () => void send("Page.crash").catch(() => undefined),
    close: () => ask("Target.closeTarget", { targetId }),
  };
}
