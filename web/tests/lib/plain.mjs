/** A Chromium that nobody looks into, for measuring. Playwright has DevTools watch the network of every page and Worker,
 * which slows a tab's uploads to a twentieth; this asks DevTools for nothing but to run scripts. */

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromiumPath, FLAGS } from "./chromium.mjs";
import { talk } from "./devtools.mjs";

/** `{pid, open(url), close()}`, the browser's processes being the group of `pid`; each opened page is `{evaluate(fn, arg), waitFor(fn, arg), show(), freeze(frozen), close()}`. A page that is opened or shown hides the one before it
 * for good, which Playwright's pages never are. */
export async function launchPlain({ args = [] } = {}) {
  const profile = await mkdtemp(join(tmpdir(), "shoal-chromium-"));
  const words = ["--headless", "--remote-debugging-pipe", `--user-data-dir=${profile}`, ...FLAGS, ...args];
  const child = spawn(chromiumPath(), words, {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    detached: true,
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ask = talk(child.stdio[3], child.stdio[4]);
  return {
    pid: child.pid,
    open: (url) => openPage(ask, url),
    async close() {
      ask("Browser.close").catch(() => undefined);
      const late = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 3_000);
      await ended;
      clearTimeout(late);
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function openPage(ask, url) {
  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  const evaluate = async (fn, arg) => {
    const expression = `(${fn})(${arg === undefined ? "" : JSON.stringify(arg)})`;
    const options = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await ask("Runtime.evaluate", options, sessionId);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  await ask("Page.navigate", { url }, sessionId);
  const page = {
    evaluate,
    /** Asks until the answer is true. A page on its way has no answer yet. */
    async waitFor(fn, arg, seconds = 30) {
      for (const until = Date.now() + seconds * 1000; ; ) {
        const answer = await evaluate(fn, arg).catch(() => false);
        if (answer) return answer;
        if (Date.now() > until) throw new Error(`waited ${seconds} s in vain for ${fn}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    show: () => ask("Target.activateTarget", { targetId }),
    /** As a browser does to a hidden page after some minutes; its Workers stand still too. */
    freeze: (frozen) => ask("Page.setWebLifecycleState", { state: frozen ? "frozen" : "active" }, sessionId),
    close: () => ask("Target.closeTarget", { targetId }),
  };
  await page.waitFor((url) => document.readyState === "complete" && location.href === url, new URL(url).href);
  return page;
}
