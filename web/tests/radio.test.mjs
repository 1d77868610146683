/** Direct ways between two pages of one browser: frames go over them, their end is noticed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch, openPage } from "./lib/chromium.mjs";
import { send, startPool } from "./lib/pool.mjs";

const FRAMES = 1000;
/** The largest a link makes. */
const FRAME_BYTES = 64 << 10;

let pool;
let browser;
let context;
let rooms = 0;

before(async () => {
  const names = ["radio-page", "radio-worker"];
  const entryPoints = names.map((name) => fileURLToPath(new URL(`lib/${name}.ts`, import.meta.url)));
  const { outputFiles } = await build({
    entryPoints,
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
    outdir: "/",
  });
  const routes = Object.fromEntries(
    outputFiles.map(({ path, text }) => [
      `GET ${path}`,
      (_request, response) => send(response, 200, "text/javascript", text),
    ]),
  );
  pool = await startPool({ routes });
  browser = await launch();
  // One, because pages of others cannot hear each other.
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await pool?.close();
});

async function openEnd(doing, room, takesChannels) {
  const page = await openPage(context, `${pool.url}/blank`);
  const ask = (message) => page.evaluate((message) => globalThis.end.ask(message), message);
  await page.evaluate(async (url) => {
    const { open } = await import(`${url}/radio-page.js`);
    globalThis.end = open(`${url}/radio-worker.js`);
  }, pool.url);
  await ask({ type: "begin", do: doing, room, takesChannels });
  const once = async (wanted) => {
    for (let tries = 0; tries < 3000; tries++) {
      const seen = await ask({ type: "seen" });
      if (wanted(seen)) return seen;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`not ${wanted}: ${JSON.stringify(await ask({ type: "seen" }))}`);
  };
  return { page, ask, once, close: () => page.close() };
}

/** Two ends that are up. */
async function openPair(takesChannels) {
  const room = `room ${++rooms}`;
  const listener = await openEnd("listen", room, takesChannels);
  const dialler = await openEnd("dial", room, takesChannels);
  await Promise.all([listener, dialler].map((end) => end.once(({ ups }) => ups === 1)));
  return [dialler, listener];
}

for (const [where, takesChannels] of [["in the Worker", true], ["on the page", false]]) {
  test(`a thousand frames each way, the channel ${where}`, async (t) => {
    const ends = await openPair(takesChannels);
    t.after(() => Promise.all(ends.map((end) => end.close())));
    for (const end of ends) await end.ask({ type: "send", count: FRAMES, size: FRAME_BYTES });
    for (const end of ends) {
      const { wrong, downs, isHere } = await end.once(({ frames }) => frames === FRAMES);
      assert.deepEqual([wrong, downs, isHere], [0, 0, takesChannels]);
    }
  });

  test(`whoever hangs up is noticed, the channel ${where}`, async (t) => {
    const [dialler, listener] = await openPair(takesChannels);
    t.after(() => Promise.all([dialler, listener].map((end) => end.close())));
    await dialler.ask({ type: "hang" });
    await listener.once(({ downs }) => downs === 1);
  });

  test(`a page that dies is noticed, the channel ${where}`, async (t) => {
    const [dialler, listener] = await openPair(takesChannels);
    t.after(() => dialler.close());
    await listener.close();
    await dialler.once(({ downs }) => downs === 1);
  });
}

test("a Worker whose page stands still gives up the channel that is there", async (t) => {
  const [dialler, listener] = await openPair(false);
  t.after(() => Promise.all([dialler, listener].map((end) => end.close())));
  // Longer than a Worker waits for its page, and no longer than the peer needs to find out.
  await dialler.page.evaluate(() => {
    for (const until = performance.now() + 5_000; performance.now() < until; );
  });
  await dialler.once(({ downs }) => downs === 1);
});
