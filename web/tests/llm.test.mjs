/** Tabs keep language models ready and speak, with the words that a native node has. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage, workerCount } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { joinTab } from "./lib/tab.mjs";

const FILE = join(process.env.SHOAL_OUTSIDE ?? "", "stories15m/stories15M-q8_0.gguf");
const skip = !existsSync(FILE) && "cargo xtask test web fetches the model";
const MODEL = "stories";
const BEGIN = "Once upon a time, there was a little fish";

let coordinator;
let front;
let browser;
let context;
let shoal;
let file;

before(async () => {
  if (skip) return;
  [coordinator, browser, file] = await Promise.all([startCoordinator(), launch(), readFile(FILE)]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
});

beforeEach(async () => {
  if (skip) return;
  await context?.close();
  for (const { name } of await shoal.services()) await shoal.unserve(name);
  await until("the nodes before to be gone", async () => (await shoal.nodes()).length === 0);
  context = await browser.newContext();
});

after(async () => {
  await browser?.close();
  await front?.close();
  await coordinator?.close();
});

function ask(method, path, body, signal) {
  const headers = { authorization: `Bearer ${coordinator.key}` };
  return fetch(`${coordinator.url}${path}`, { method, headers, body: body && JSON.stringify(body), signal });
}

async function json(method, path, body) {
  const answer = await ask(method, path, body);
  const said = await answer.json();
  assert.ok(answer.ok, JSON.stringify(said));
  return said;
}

async function added(rest = {}) {
  const { hash } = await shoal.upload(file);
  await json("POST", "/api/v1/services", { name: MODEL, kind: "llm", model: hash, strangers: true, ...rest });
}

async function tabOf(options = { lend: { cpu: 1 } }, place = front) {
  const tab = await joinTab(context, place, options);
  await tab.joined();
  return tab;
}

async function native(t, name) {
  const node = await startNode(coordinator.joinLink, ["--no-gpu", "--node-name", name]);
  t.after(() => node.close("SIGKILL"));
  await until(`${name} to join`, async () => (await shoal.nodes()).some((node) => node.name === name));
  return node;
}

const request = (more) => ({ model: MODEL, prompt: BEGIN, max_tokens: 40, temperature: 0, ...more });

/** What is said, token by token. */
async function told(more = {}) {
  const { choices, usage } = await json("POST", "/v1/completions", request({ logprobs: 2, ...more }));
  return { choices, tokens: usage.completion_tokens };
}

/** The parts of an answer as they come. */
async function* streamed(more, signal) {
  const answer = await ask("POST", "/v1/completions", request({ stream: true, ...more }), signal);
  let rest = "";
  for await (const bytes of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + bytes).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const part = JSON.parse(line.slice(6));
      assert.equal(part.error, undefined, line);
      yield part.choices[0]?.text ?? "";
    }
  }
}

const service = async () => (await shoal.services())[0];

async function readyOn() {
  const { replicas } = await service();
  return replicas.filter(({ ready }) => ready).map(({ name }) => name);
}

/** No time is promised: a test that hangs is ended from outside. */
async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 25))) {
    assert.ok(Date.now() - start < 120_000, `waited in vain for ${what}`);
  }
}

const engines = async () => {
  const [node] = await shoal.nodes();
  return node?.engines.map((engine) => engine.name) ?? [];
};

test("a page that joins fetches nothing of language models, and offers them", { skip }, async () => {
  front.served.clear();
  const page = await openPage(context, front.joinLink);
  await page.getByRole("button", { name: "Lend this device" }).click();
  await until("language models to be offered", async () => (await engines()).includes("llm"));
  assert.ok(front.served.has("/assets/brain_bg.wasm"));
  const ours = () => [...front.served].filter((path) => path.includes("llm")).sort();
  assert.deepEqual(ours(), []);
  await added();
  assert.match((await told()).choices[0].text, /\w+ \w+/);
  assert.equal(ours()[0], "/assets/llm-worker.js");
  assert.equal(ours().length, 2, "one module");
  await page.getByRole("list", { name: "Kept ready" }).getByText(MODEL).waitFor();
});

test("a tab says what a native node says, token by token", { skip }, async (t) => {
  const tab = await tabOf();
  await added();
  const asks = [{}, { temperature: 0.9, seed: 5 }, { temperature: 1.2, seed: 6, top_k: 20, frequency_penalty: 0.4 }, { n: 3, temperature: 1, seed: 9 }];
  const here = [];
  for (const more of asks) here.push(await told(more));
  assert.equal(here[0].tokens, 40);
  assert.notEqual(here[0].choices[0].text, here[1].choices[0].text);
  await native(t, "desk");
  await tab.close();
  await until("the node to have it", async () => (await readyOn()).includes("desk"));
  for (const [at, more] of asks.entries()) assert.deepEqual(await told(more), here[at]);
});

test("conversations at once get what each gets alone", { skip }, async () => {
  await tabOf();
  await added();
  const begins = ["The dog", "One day a girl named Lily", "The sun was", "Tom had a red"];
  const text = async (prompt) => (await told({ prompt })).choices[0].text;
  const alone = [];
  for (const prompt of begins) alone.push(await text(prompt));
  assert.deepEqual(await Promise.all([...begins, ...begins].map(text)), [...alone, ...alone]);
});

test("a native node goes on with the same words when the tab is closed in the middle", { skip }, async (t) => {
  const tab = await tabOf();
  await added();
  const whole = (await told({ max_tokens: 180 })).choices[0].text;
  await native(t, "spare");
  // Others beside it make it last: on a busy machine a browser takes longer to close a tab than one answer takes.
  const drained = async (prompt) => {
    for await (const _ of streamed({ prompt, max_tokens: 200 }));
  };
  const beside = ["The dog", "The sun was", "Tom had a red"].map(drained);
  let [text, parts] = ["", 0];
  for await (const part of streamed({ max_tokens: 180 })) {
    text += part;
    parts += 1;
    if (parts === 3) void tab.close();
  }
  assert.equal(text, whole);
  await Promise.all(beside);
  const { repeated } = await service();
  assert.deepEqual(await readyOn(), ["spare"]);
  assert.ok(repeated >= 1 && repeated <= 4, `${repeated} went on elsewhere`);
});

test("who hangs up frees the tab at once", { skip }, async () => {
  await tabOf();
  await added();
  const hangUp = new AbortController();
  let parts = 0;
  const listening = (async () => {
    for await (const _ of streamed({ max_tokens: 200 }, hangUp.signal)) if (++parts === 3) hangUp.abort();
  })();
  await assert.rejects(listening, { name: "AbortError" });
  await until("the tab to be free", async () => (await service()).running === 0);
  assert.equal((await told()).tokens, 40);
});

test("a service that ends takes its Worker along", { skip }, async () => {
  const { page } = await tabOf();
  await until("the first Workers", async () => (await workerCount(page)) > 0);
  const before = await workerCount(page);
  await added();
  await told();
  await shoal.unserve(MODEL);
  await until("the Worker to end", async () => (await workerCount(page)) === before);
});

test("a tab that lends too little memory is not asked, and one that lends enough is", { skip }, async () => {
  const tab = await tabOf({ lend: { cpu: 1, memory: 64 << 20 } });
  await added();
  const hangUp = new AbortController();
  const waiting = streamed({}, hangUp.signal).next().catch(() => undefined);
  await until("the request to wait", async () => (await service()).waiting === 1);
  assert.deepEqual((await service()).replicas, []);
  hangUp.abort();
  await waiting;
  await tab.set({ memory: 1 << 30 });
  assert.equal((await told()).tokens, 40);
});

test("a tab whose module does not load offers no language models any more, and another one answers", { skip }, async (t) => {
  const broken = await startFront(coordinator, {
    file: (path, bytes) => (/llm.*\.wasm$/.test(path) ? Buffer.from("no module") : bytes),
  });
  t.after(() => broken.close());
  await tabOf({}, broken);
  await until("language models to be offered", async () => (await engines()).includes("llm"));
  await added();
  await until("language models to be withdrawn", async () => !(await engines()).includes("llm"));
  assert.ok((await engines()).includes("onnx"));
  await tabOf();
  assert.equal((await told()).tokens, 40);
});

test("pieces that came once are kept by the browser", { skip }, async (t) => {
  const hash = (await shoal.upload(file)).hash;
  let asked = 0;
  const counted = await startFront(coordinator, { cut: (blob) => (blob.hash === hash && (asked += 1), undefined) });
  t.after(() => counted.close());
  const first = await tabOf(undefined, counted);
  await added();
  await told();
  assert.ok(asked > 0);
  const kept = () => first.page.evaluate(async (url) => (await (await import(`${url}/assets/sdk.js`)).shelf.size()), counted.url);
  await until("all pieces to be kept", async () => (await kept()) >= file.length);
  const before = asked;
  await first.close();
  await tabOf(undefined, counted);
  await told();
  assert.equal(asked, before, "the second tab of this browser reads what is kept");
});

test("a tab that is sent other bytes does not speak with them", { skip }, async (t) => {
  const { hash } = await shoal.upload(file);
  const wrong = (found, bytes) => {
    if (found === hash) bytes[bytes.length >> 1] ^= 1;
    return bytes;
  };
  const lying = await startFront(coordinator, { blob: wrong });
  t.after(() => lying.close());
  await tabOf(undefined, lying);
  await added();
  await until("the tab to refuse it", async () => /other bytes came for piece \d+/.test((await service()).trouble ?? ""));
  assert.deepEqual(await readyOn(), []);
});
