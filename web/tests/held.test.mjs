/** Pieces of a blob that a browser keeps: what counts after a tab was ended or the disk changed something. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { launch, openPage } from "./lib/chromium.mjs";
import { send, startPool } from "./lib/pool.mjs";

const MIB = 1 << 20;
const RECORD = 36;

let pool;
let browser;

before(async () => {
  const entryPoints = [fileURLToPath(new URL("lib/held-worker.ts", import.meta.url))];
  const { outputFiles } = await build({ entryPoints, bundle: true, format: "esm", target: "es2022", write: false });
  const [{ text }] = outputFiles;
  const routes = { "GET /held-worker.js": (_, response) => send(response, 200, "text/javascript", text) };
  [pool, browser] = await Promise.all([startPool({ routes }), launch()]);
});

after(async () => {
  await browser?.close();
  await pool?.close();
});

/** A page with files of its own. `open` starts a Worker that has them open, and answers with the pieces there are. */
async function files(t) {
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await openPage(context, `${pool.url}/blank`);
  const ask = async (message) => {
    const { is, error } = await page.evaluate(
      (message) =>
        new Promise((resolve) => {
          globalThis.worker.onmessage = ({ data }) => resolve(data);
          globalThis.worker.postMessage(message);
        }),
      message,
    );
    assert.equal(error, undefined);
    return is;
  };
  const begin = () =>
    page.evaluate((url) => {
      globalThis.worker = new Worker(`${url}/held-worker.js`, { type: "module" });
    }, pool.url);
  await begin();
  return {
    open: () => ask({ do: "open", base: pool.url }),
    put: (...pieces) => pieces.reduce((before, piece) => before.then(() => ask({ do: "put", piece })), Promise.resolve()),
    read: (piece) => ask({ do: "read", piece }),
    close: () => ask({ do: "close" }),
    sizes: () => ask({ do: "sizes" }),
    spoil: (file, at, bytes, size) => ask({ do: "spoil", file, at, bytes, size }),
    /** Ends the Worker as a tab is ended, and starts another. */
    end: async () => {
      await page.evaluate(() => globalThis.worker.terminate());
      await begin();
    },
  };
}

test("pieces take what they are, wherever they lie, and are there after the tab was ended", async (t) => {
  const kept = await files(t);
  assert.deepEqual(await kept.open(), []);
  await kept.put(3, 8, 6);
  await kept.end();
  assert.deepEqual(await kept.open(), [3, 6, 8]);
  assert.deepEqual([await kept.read(3), await kept.read(8), await kept.read(4)], [MIB, 99, "none"]);
  await kept.close();
  assert.deepEqual(await kept.sizes(), [3 * MIB, 3 * RECORD]);
});

test("a piece counts when its record is there, and all of its bytes", async (t) => {
  const kept = await files(t);
  await kept.open();
  await kept.put(1, 2);
  await kept.close();
  // Ended after the bytes of a third one, in the middle of its record.
  await kept.spoil("held", 2 * MIB, Array(4096).fill(9));
  await kept.spoil("pieces", 2 * RECORD, [5, 0, 0, 0, 7, 7]);
  assert.deepEqual(await kept.open(), [1, 2]);
  await kept.put(7);
  await kept.close();
  assert.deepEqual(await kept.sizes(), [3 * MIB, 3 * RECORD]);
  assert.deepEqual(await kept.open(), [1, 2, 7]);
  assert.equal(await kept.read(7), MIB);
  await kept.close();
  await kept.spoil("held", 0, [], 1.5 * MIB);
  assert.deepEqual(await kept.open(), [1]);
});

test("what the disk changed is not there any more, and its place is used again", async (t) => {
  const kept = await files(t);
  await kept.open();
  await kept.put(1, 2);
  await kept.close();
  await kept.spoil("held", 12_345, [9, 9]);
  assert.deepEqual(await kept.open(), [1, 2], "that is seen when it is read");
  assert.deepEqual([await kept.read(1), await kept.read(2)], ["none", MIB]);
  await kept.end();
  assert.deepEqual(await kept.open(), [2]);
  await kept.put(1);
  assert.equal(await kept.read(1), MIB);
  await kept.close();
  assert.deepEqual(await kept.sizes(), [2 * MIB, 2 * RECORD]);
});

test("a record of nonsense is no piece", async (t) => {
  const kept = await files(t);
  await kept.open();
  await kept.put(1);
  await kept.close();
  await kept.spoil("pieces", RECORD, Array(RECORD * 3).fill(0xee));
  await kept.spoil("pieces", 4 * RECORD, [1, 0, 0, 0, ...Array(32).fill(1)]);
  assert.deepEqual(await kept.open(), [1]);
  assert.equal(await kept.read(1), MIB);
});
