/** Language models give the same bits in a tab as natively, with every set of instructions. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { launch, openPage } from "./lib/chromium.mjs";

/** Where cargo put the programs. */
const BUILT = process.env.SHOAL_LLM_SPEED ?? new URL("../../target", import.meta.url).pathname;
const MODELS = new URL("../../conformance/llm/", import.meta.url).pathname;
const SHIM = new URL("../node_modules/@bjorn3/browser_wasi_shim/dist/", import.meta.url).pathname;
const WORDS = ["--prompt", "37", "--follow", "6"];

let browser;
let server;
let url;

before(async () => {
  browser = await launch();
  server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, "http://site");
    const [, what, ...rest] = pathname.split("/");
    const from = { shim: SHIM, models: MODELS, built: `${BUILT}/` }[what];
    const type = what === "shim" ? "text/javascript" : what === "" ? "text/html" : "application/octet-stream";
    response.writeHead(200, { "content-type": type });
    response.end(from ? readFileSync(from + rest.join("/")) : "<!doctype html><title>models</title><link rel=icon href=data:>");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${server.address().port}/`;
});

after(async () => {
  await browser?.close();
  server?.closeAllConnections();
  server?.close();
});

/** What the program prints in a page. */
async function inTab(built, model, words) {
  const page = await openPage(browser, url);
  const printed = await page.evaluate(
    async ([built, model, words]) => {
      const { WASI, File, OpenFile, PreopenDirectory, ConsoleStdout } = await import("/shim/index.js");
      const bytes = async (path) => new Uint8Array(await (await fetch(path)).arrayBuffer());
      const lines = [];
      const out = () => ConsoleStdout.lineBuffered((line) => lines.push(line));
      const folder = new PreopenDirectory("/", new Map([[model, new File(await bytes(`/models/${model}`))]]));
      const wasi = new WASI(["llm-speed", model, ...words], [], [new OpenFile(new File([])), out(), out(), folder]);
      const { instance } = await WebAssembly.instantiate(await bytes(`/built/${built}`), {
        wasi_snapshot_preview1: wasi.wasiImport,
      });
      wasi.start(instance);
      return lines.join("\n");
    },
    [built, model, words],
  );
  await page.close();
  return JSON.parse(printed);
}

for (const model of ["llama", "qwen2", "qwen3", "gemma3"]) {
  test(`${model} gives the same bits in a tab as natively`, async () => {
    const program = `${BUILT}/release/examples/llm-speed`;
    const native = JSON.parse(
      execFileSync(program, [`${MODELS}${model}.gguf`, ...WORDS, "--kernel", "plain"], { encoding: "utf8" }),
    );
    assert.equal(native.kernel, "plain");
    for (const simd of ["simd128", "relaxed-simd"]) {
      const found = await inTab(`${simd}/wasm32-wasip1/release/examples/llm-speed.wasm`, `${model}.gguf`, WORDS);
      assert.deepEqual([found.kernel, found.bits], [simd, native.bits]);
    }
  });
}
