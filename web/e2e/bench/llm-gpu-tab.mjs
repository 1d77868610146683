// Measures `bench llm-solo` on a browser's GPU: a language model in a page, by the module that tabs have, through WebGPU.
//
//   node llm-gpu-tab.mjs MODEL.gguf PROMPT FOLLOW ROUNDS
//
// Prints one JSON object: the most tokens per second for the prompt and for what follows it, and the kernels that are started for
// a token.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

import { launch, openPage } from "../../tests/lib/chromium.mjs";

const [model, prompt, follow, rounds] = process.argv.slice(2);
const MODULE = new URL("../../sdk/generated/llm-gpu/", import.meta.url);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

const server = createServer(async ({ url }, response) => {
  const [, what, ...rest] = url.split("/");
  if (!what) return response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><link rel=icon href=data:>");
  const file = { model, module: new URL(rest.join("/"), MODULE) }[what];
  const bytes = file && (await readFile(file).catch(() => undefined));
  response.writeHead(bytes ? 200 : 404, { "content-type": TYPES[extname(url)] ?? "application/octet-stream" }).end(bytes);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await launch();
try {
  const page = await openPage(browser, `http://127.0.0.1:${server.address().port}/`);
  const found = await page.evaluate(measured, { prompt: Number(prompt), follow: Number(follow), rounds: Number(rounds) });
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
  server.close();
}

/** Runs in a page: the model asked as a page that talks to it alone does. */
async function measured({ prompt, follow, rounds }) {
  const { default: init, GpuLoader } = await import(`${location.origin}/module/llm-gpu.js`);
  await init();
  const file = new Uint8Array(await (await fetch("/model")).arrayBuffer());
  const loader = await GpuLoader.alone(file.length, 1024);
  for (let wants = loader.wants(); wants; wants = loader.wants()) loader.give(file.subarray(...wants));
  const language = await loader.finish();
  const best = { prefill: 0, decode: 0 };
  for (let round = 1; round <= rounds; round += 1) {
    // Another beginning each time, so that nothing is known from the round before. A common word is a token.
    const content = `Round ${round}:${" fish".repeat(prompt - 30)}`;
    const request = { model: "it", messages: [{ role: "user", content }], temperature: 0, max_tokens: follow };
    language.chat(round, JSON.stringify(request), 0, 1);
    for (let isOver = false; !isOver; ) {
      for (const { said, failure } of await language.go()) {
        if (failure) throw new Error(failure.message);
        if (said?.finish === undefined) continue;
        isOver = true;
        best.prefill = Math.max(best.prefill, (1000 * (said.promptTokens - said.cachedTokens)) / said.promptMs);
        best.decode = Math.max(best.decode, (1000 * said.answerTokens) / said.answerMs);
      }
    }
  }
  const adapter = await navigator.gpu.requestAdapter();
  const gpu = `${adapter.info.vendor} ${adapter.info.architecture}`;
  return { ...best, dispatches: language.dispatches, gpu };
}
