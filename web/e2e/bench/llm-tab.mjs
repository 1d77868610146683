// Measures `bench llm-solo` in a browser: a language model in a page, in turns with wllama (llama.cpp as WebAssembly) in another
// page of the same Chromium. One thread on both sides, on the processor.
//
//   node llm-tab.mjs MODEL.gguf LLM-SPEED.wasm WLLAMA PROMPT FOLLOW ROUNDS
//
// Prints one JSON object: the most tokens per second of each, for the prompt and for what follows it.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";

import { launchPlain } from "../../tests/lib/plain.mjs";

const [model, program, wllama, prompt, follow, rounds] = process.argv.slice(2);
const SHIM = new URL("../../node_modules/@bjorn3/browser_wasi_shim/dist/", import.meta.url);
const THEIRS = new URL(`${pathToFileURL(wllama).href}/`);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Without the headers that give a page shared memory, so that wllama takes one thread too. */
const server = createServer(async ({ url }, response) => {
  if (url === "/") return response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
  const [, what, ...rest] = url.split("/");
  const file = { model, program, shim: new URL(rest.join("/"), SHIM), theirs: new URL(rest.join("/"), THEIRS) }[what];
  const bytes = file && (await readFile(file).catch(() => undefined));
  response.writeHead(bytes ? 200 : 404, { "content-type": TYPES[extname(url)] ?? "application/octet-stream" }).end(bytes);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await launchPlain();
try {
  const url = `http://127.0.0.1:${server.address().port}/`;
  const sides = { ours: await browser.open(url), theirs: await browser.open(url) };
  await sides.ours.evaluate(openOurs, { words: ["--prompt", prompt, "--follow", follow] });
  const { vocabulary } = await sides.theirs.evaluate(openTheirs, { prompt: Number(prompt), follow: Number(follow) });
  const found = { ours: [], theirs: [] };
  for (let round = 0; round < Number(rounds); round += 1) {
    for (const [side, page] of Object.entries(sides)) {
      await page.show();
      found[side].push(await page.evaluate(() => globalThis.once()));
    }
  }
  const best = (side) => ({
    ...found[side].at(-1),
    prefill: Math.max(...found[side].map(({ prefill }) => prefill)),
    decode: Math.max(...found[side].map(({ decode }) => decode)),
  });
  console.log(JSON.stringify({ ours: best("ours"), theirs: { ...best("theirs"), vocabulary } }));
} finally {
  await browser.close();
  server.close();
}

/** Runs in a page: the program that measures the engine, anew in each round, as natively. */
async function openOurs({ words }) {
  const { WASI, File, OpenFile, PreopenDirectory, ConsoleStdout } = await import(`${location.origin}/shim/index.js`);
  const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
  const [model, program] = [await bytes("/model"), await WebAssembly.compile(await bytes("/program"))];
  globalThis.once = async () => {
    const lines = [];
    const out = () => ConsoleStdout.lineBuffered((line) => lines.push(line));
    const folder = new PreopenDirectory("/", new Map([["model", new File(model)]]));
    const wasi = new WASI(["llm-speed", "model", ...words], [], [new OpenFile(new File([])), out(), out(), folder]);
    const imports = { wasi_snapshot_preview1: wasi.wasiImport };
    wasi.start(await WebAssembly.instantiate(program, imports));
    return JSON.parse(lines.join("\n"));
  };
}

/** Runs in a page: as the package's own documentation does it. Its times are its own. */
async function openTheirs({ prompt, follow }) {
  const { Wllama } = await import(`${location.origin}/theirs/index.js`);
  const wllama = new Wllama({ default: `${location.origin}/theirs/wasm/wllama.wasm` }, { suppressNativeLog: true });
  const model = await (await fetch("/model")).blob();
  await wllama.loadModel([model], { n_ctx: 1024, n_batch: 512, n_threads: 1, n_gpu_layers: 0, warmup: true });
  const { n_vocab: vocabulary } = wllama.getLoadedContextInfo();
  let round = 0;
  globalThis.once = async () => {
    round += 1;
    // Another beginning each time, so that nothing is kept from the round before. A common word is a token.
    const text = `Round ${round}:${" fish".repeat(prompt - 4)}`;
    const options = { prompt: text, max_tokens: follow, temperature: 0, temp: 0, ignore_eos: true };
    const { timings } = await wllama.createCompletion(options);
    const { prompt_n, prompt_per_second: prefill, predicted_n, predicted_per_second: decode } = timings;
    return { prefill, decode, prompt: prompt_n, follow: predicted_n };
  };
  return { vocabulary };
}
