/** A headless Chromium with WebGPU on a software GPU. */

import { execFileSync } from "node:child_process";
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

/** `profile`: a folder of its own makes it another device; without it nothing is kept. */
export async function launch({ profile, args = [] } = {}) {
  const options = { executablePath: chromiumPath(), args: [...FLAGS, ...args] };
  if (profile) return chromium.launchPersistentContext(profile, { ...options, ignoreHTTPSErrors: true });
  return chromium.launch(options);
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
