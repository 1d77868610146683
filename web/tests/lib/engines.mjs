/** A Chromium page whose engine Workers compute what a test asks, without a coordinator. */

import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch, openPage } from "./chromium.mjs";
import { send, startPool } from "./pool.mjs";

/** `blobs` may be added to at any time. */
export async function openEngines() {
  const blobs = {};
  const [harness] = (
    await build({
      entryPoints: [fileURLToPath(new URL("harness.ts", import.meta.url))],
      bundle: true,
      format: "esm",
      target: "es2022",
      write: false,
    })
  ).outputFiles;
  const routes = {
    "GET /harness.js": (_request, response) => send(response, 200, "text/javascript", harness.text),
  };
  const pool = await startPool({ blobs, routes });
  const browser = await launch();
  const page = await openPage(browser, `${pool.url}/blank`);
  await page.evaluate(async (url) => {
    const { open } = await import(`${url}/harness.js`);
    globalThis.run = await open(url);
  }, pool.url);
  let attempts = 0;
  return {
    blobs,
    /** Answers for `spans` of one job, each `{bytes}` or `{failure}`. */
    async run(kind, info, spans) {
      const job = ++attempts;
      const units = spans.map(({ start, len }) => ({ job, attempt: ++attempts, start, len }));
      const answers = await page.evaluate(
        async ({ kind, info, units }) => {
          if (info.work.bytes) info.work.bytes = new Uint8Array(info.work.bytes);
          const answers = await globalThis.run(kind, info, units);
          return answers.map(({ result, failure }) => ({
            failure,
            inline: result?.inline && Array.from(result.inline),
          }));
        },
        { kind, info, units },
      );
      return answers.map(({ failure, inline }, at) => {
        if (failure) return { failure };
        if (inline) return { bytes: Buffer.from(inline) };
        return { bytes: pool.results.get(`${job}/${units[at].attempt}`) };
      });
    },
    async close() {
      await browser.close();
      await pool.close();
    },
  };
}
