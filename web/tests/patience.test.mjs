/** What the SDK does while the coordinator is away. Needs no browser and no pool: a server here plays the coordinator. */

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { after, before, test } from "node:test";

import { build } from "esbuild";

const SRC = fileURLToPath(new URL("../sdk/src/", import.meta.url));
const PARTS = ["patience", "http", "job", "join/link", "chat/remote"];

let sdk;
let folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "shoal-sdk-"));
  const outfile = join(folder, "sdk.mjs");
  const contents = PARTS.map((part) => `export * from "./${part}.ts";`).join("\n");
  await build({ stdin: { contents, resolveDir: SRC }, outfile, bundle: true, format: "esm", logLevel: "error" });
  sdk = await import(pathToFileURL(outfile).href);
});

after(() => rm(folder, { recursive: true }));

/** A coordinator that answers each request with the next of these. */
async function coordinator(...answers) {
  const seen = [];
  const server = createServer((request, response) => {
    const one = { url: request.url, headers: request.headers };
    seen.push(one);
    one.body = request.toArray().then((parts) => Buffer.concat(parts).toString());
    (answers.length > 1 ? answers.shift() : answers[0])(response, request);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { seen, http: new sdk.Http(url, "key"), close: () => server.close() };
}

const says = (status, body) => (response) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};
const hangsUp = (response) => response.destroy();
const isStopping = says(503, { error: { code: "stopping", message: "the coordinator is stopping" } });

test("a request that got no answer is sent again with its key", async () => {
  const pool = await coordinator(hangsUp, isStopping, says(201, { id: 7 }));
  const send = () => pool.http.post("/api/v1/jobs", { kind: "noop" }, undefined, "the key");
  assert.deepEqual(await sdk.patiently(send), { id: 7 });
  assert.deepEqual(pool.seen.map(({ headers }) => headers["idempotency-key"]), ["the key", "the key", "the key"]);
  pool.close();
});

test("what is refused is not asked again, and patience ends", async () => {
  const full = says(503, { error: { code: "disk_full", message: "the disk is full" } });
  for (const answer of [says(422, { error: { code: "bad_request", message: "no" } }), full]) {
    const pool = await coordinator(answer);
    await assert.rejects(sdk.patiently(() => pool.http.json("/x")), sdk.ShoalError);
    assert.equal(pool.seen.length, 1);
    pool.close();
  }
  const pool = await coordinator(hangsUp);
  await assert.rejects(sdk.patiently(() => pool.http.json("/x"), undefined, 300), { code: "unreachable" });
  assert.ok(pool.seen.length > 1);
  pool.close();
});

test("who aborts waits no longer", async () => {
  const pool = await coordinator(hangsUp);
  const abort = new AbortController();
  setTimeout(() => abort.abort(), 50);
  await assert.rejects(sdk.patiently(() => pool.http.json("/x"), abort.signal), { name: "AbortError" });
  pool.close();
});

test("a download goes on where it broke off", async () => {
  const whole = Buffer.from("the answers of many devices");
  const breaks = (response) => {
    response.writeHead(200, { "content-length": whole.length });
    response.write(whole.subarray(0, 10), () => setTimeout(() => response.destroy(), 20));
  };
  const rest = (response, { headers }) => {
    const from = Number(/^bytes=(\d+)-$/.exec(headers.range)[1]);
    response.writeHead(206).end(whole.subarray(from));
  };
  const pool = await coordinator(breaks, hangsUp, rest);
  const bytes = await sdk.download(pool.http, "/api/v1/jobs/1/result");
  assert.equal(Buffer.from(bytes).toString(), whole.toString());
  assert.deepEqual(pool.seen.map(({ headers }) => headers.range), [undefined, "bytes=10-", "bytes=10-"]);
  pool.close();
});

test("a job's handle is the job now, and its result at the end", async () => {
  const calls = [];
  const handle = new sdk.JobHandle(
    {
      look: async (id) => ({ id, state: "running" }),
      wait: async (id) => ({ id, state: "done" }),
      outcome: async (job) => [job.state],
      cancel: async (id) => calls.push(id),
    },
    3,
  );
  assert.deepEqual(await handle, { id: 3, state: "running" });
  assert.deepEqual(await handle.result(), ["done"]);
  await handle.cancel();
  assert.deepEqual([handle.id, calls], [3, [3]]);
});

test("a join link is taken as it is printed", () => {
  const link = "https://192.168.1.20:7420/join#TOKEN";
  assert.deepEqual(sdk.partsOf(link), { url: "https://192.168.1.20:7420", token: "TOKEN" });
  assert.deepEqual(sdk.partsOf("https://a.example/shoal/join#T"), { url: "https://a.example/shoal", token: "T" });
  for (const bad of ["", "TOKEN", "https://a.example/", "https://a.example/join", "https://a.example/jobs#T"]) {
    assert.throws(() => sdk.partsOf(bad), TypeError);
  }
});

/** Some parts of an answer, then what becomes of the connection. */
const tells = (texts, end) => (response) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const text of texts) {
    const part = typeof text === "string" ? { choices: [{ delta: { content: text }, finish_reason: null }] } : text;
    response.write(`data: ${JSON.stringify(part)}\n\n`);
  }
  end(response);
};
const isOver = (response) => response.end("data: [DONE]\n\n");
/** After what was written is on its way. */
const breaksOff = (response) => setTimeout(() => response.destroy(), 30);
const messages = [{ role: "user", content: "Tell me of a fish." }];

async function said(pool, options = {}) {
  const parts = [];
  for await (const part of sdk.chat(pool.http, { model: "m", messages, ...options })) parts.push(part);
  return parts;
}

test("an answer goes on behind what was shown when the connection breaks, and its words are asked for by a seed", async () => {
  const finish = { choices: [{ delta: {}, finish_reason: "stop" }] };
  const pool = await coordinator(
    tells(["A fish"], breaksOff),
    hangsUp,
    isStopping,
    tells(["A", " fish"], (response) => response.end()),
    tells(["A fish s", { error: { code: "stopping", message: "the coordinator is stopping" } }], isOver),
    tells(["A f", "ish swims", ".", finish], isOver),
  );
  const parts = await said(pool);
  assert.deepEqual(parts.map(({ text }) => text), ["A fish", " s", "wims", ".", ""]);
  assert.equal(parts.at(-1).finish, "stop");
  const bodies = await Promise.all(pool.seen.map(({ body }) => body));
  assert.equal(new Set(bodies).size, 1, "each time the same is asked");
  const [first] = bodies.map((body) => JSON.parse(body));
  assert.ok(Number.isInteger(first.seed) && first.seed >= 0);
  assert.equal(first.stream, true);
  pool.close();
});

test("an answer that begins in other words is no continuation, and a model's own failure is told", async () => {
  const others = await coordinator(tells(["A fish"], breaksOff), tells(["A bird"], isOver));
  await assert.rejects(said(others, { seed: 7 }), { code: "other_words" });
  assert.equal(JSON.parse(await others.seen[0].body).seed, 7);
  others.close();
  const early = await coordinator(tells(["A fish"], breaksOff), tells(["A", { choices: [{ delta: {}, finish_reason: "stop" }] }], isOver));
  await assert.rejects(said(early), { code: "other_words" });
  early.close();
  const broken = { error: { code: "bad_answer", message: "the model does not answer" } };
  const pool = await coordinator(tells(["A", broken], isOver));
  await assert.rejects(said(pool), { code: "bad_answer" });
  assert.equal(pool.seen.length, 1);
  pool.close();
});

test("all that a chat may be asked reaches the coordinator, and chances are shown once", async () => {
  const chance = (token, logprob) => ({ token, logprob, bytes: [...Buffer.from(token)] });
  const part = (content, logprob) => {
    const logprobs = { content: [{ ...chance(content, logprob), top_logprobs: [chance(content, logprob), chance("x", -9)] }] };
    return { choices: [{ delta: { content }, logprobs, finish_reason: null }] };
  };
  const all = [part("A", -0.5), part(" fish", -0.25)];
  const pool = await coordinator(tells(all.slice(0, 1), breaksOff), tells(all, isOver));
  const schema = { type: "object" };
  const parts = await said(pool, {
    temperature: 0.5, topP: 0.9, topK: 4, minP: 0.1, seed: 3, maxTokens: 9, stop: "x", presencePenalty: 0.1, frequencyPenalty: 0.2,
    repeatPenalty: 1.1, logitBias: { 5: -100 }, topLogprobs: 2, responseFormat: { schema },
  });
  const top = (token, logprob) => [chance(token, logprob), chance("x", -9)];
  const expected = [["A", -0.5], [" fish", -0.25]].map(([text, own]) => ({ text, logprobs: [{ ...chance(text, own), top: top(text, own) }] }));
  assert.deepEqual(parts, expected);
  assert.deepEqual(JSON.parse(await pool.seen[0].body), {
    model: "m", messages, stream: true, stream_options: { include_usage: true }, temperature: 0.5, top_p: 0.9, top_k: 4, min_p: 0.1, seed: 3,
    max_completion_tokens: 9, stop: "x", presence_penalty: 0.1, frequency_penalty: 0.2, repeat_penalty: 1.1, logit_bias: { 5: -100 },
    logprobs: true, top_logprobs: 2, response_format: { type: "json_schema", json_schema: { name: "answer", schema } },
  });
  pool.close();
});
