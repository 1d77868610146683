/** A headless Chromium with WebGPU on a software GPU. */

import { execFileSync, spawnSync } from "node:child_process";
import { chromium } from "playwright-core";

export const FLAGS = [
  "--no-sandbox",
  "--enable-unsafe-webgpu",
  "--use-webgpu-adapter=swiftshader",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** What a browser may take to wind up on a busy machine. */
const CLOSE_MS = 30_000;

/** `profile`: a folder of its own makes it another device; without it nothing is kept. */
export async function launch({ profile, args = [] } = {}) {
  const options = { executablePath: chromiumPath(), args: [...FLAGS, ...args] };
  if (profile) return endable(await chromium.launchPersistentContext(profile, { ...options, ignoreHTTPSErrors: true }));
  return endable(await chromium.launch(options));
}

/** A browser that does not close when told to is ended with its processes: no test waits for it for ever. */
export function endable(browser) {
  const close = browser.close.bind(browser);
  browser.close = async () => {
    const late = setTimeout(() => {
      console.error(`the browser did not close within ${CLOSE_MS / 1000} s and is killed`);
      spawnSync("pkill", ["-KILL", "-P", String(process.pid), "-f", "chrom"]);
    }, CLOSE_MS);
    await close().finally(() => clearTimeout(late));
  };
  return browser;
}

export function chromiumPath() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // try the next name
    }
  }
  throw new Error("no Chromium on the PATH: apt install chromium");
}

/** A page that tells its errors on the console of the test. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.on("pageerror", (error) => console.error(`page error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (message.type() === "error") console.error(`page console: ${message.text()}`);
  });
  await page.goto(url);
  return page;
}

/** How many Workers a page has, as the browser says when asked anew. Playwright's own list keeps one that ended while it was
 * still being made known. */
export async function workerCount(page) {
  const session = await page.context().newCDPSession(page);
  let count = 0;
  session.on("Target.attachedToTarget", () => (count += 1));
  await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
  await session.detach();
  return count;
}
