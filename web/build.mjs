/** Makes `dist`: pages, SDK and Workers, each file with a compressed one beside it. See README.md. */

import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "esbuild";

const WEB = dirname(fileURLToPath(import.meta.url));
/** Made beside the old one and then put in its place, so that a failed build takes nothing away. */
const DIST = join(WEB, "dist");
const NEW = join(WEB, "dist.new");
const ASSETS = join(NEW, "assets");
const GENERATED = join(WEB, "sdk/generated");
const MODULES = ["brain", "crew", "files", "gpu", "llm", "llm-gpu", "onnx", "vision"];
/** Of a module that there are two of: the one for browsers with relaxed SIMD. Both have the same glue. */
const RELAXED = ["llm-relaxed/llm_bg.wasm", "llm_relaxed_bg.wasm"];

/** onnxruntime-web's files: what loads a module, and the module, for processors and for GPUs. */
const ORT = join(WEB, "node_modules/onnxruntime-web/dist");
const ORT_FILES = { "ort-wasm-simd-threaded": "ort", "ort-wasm-simd-threaded.jspi": "ort-webgpu" };
/** Its licence wants to be named wherever it goes, and the file does not do so. */
const ORT_NOTICE = "/*! onnxruntime-web: Copyright (c) Microsoft Corporation. Licensed under the MIT License. */\n";
/** With this condition the package does not contain what loads its module: that is a file of its own, which its threads load too. */
const EXTERN = "onnxruntime-web-use-extern-wasm";
/** So large that only the compressed one is kept: hardly anybody asks for the other. */
const ONLY_GZIP = new Set(Object.values(ORT_FILES).map((name) => `${name}.wasm`));

/** Not worth a second file. */
const SMALLEST_PACKED = 256;
/** Brotli takes half a minute for a file as large as onnxruntime-web's, and makes it a fifth smaller than gzip does. */
const LARGEST_BROTLI = 4 << 20;

const COMMON = {
  bundle: true,
  format: "esm",
  target: ["es2022"],
  minify: true,
  sourcemap: false,
  legalComments: "none",
  conditions: ["source"],
  loader: { ".wgsl": "text" },
  logLevel: "warning",
  absWorkingDir: WEB,
};

async function main() {
  for (const name of MODULES) {
    if (existsSync(join(GENERATED, name, `${name}.js`))) continue;
    throw new Error(`sdk/generated/${name} is missing: run \`cargo xtask web\``);
  }
  await rm(NEW, { recursive: true, force: true });
  await mkdir(ASSETS, { recursive: true });
  await Promise.all([sdk(), workers(), app(), wasm()]);
  const files = (await readdir(NEW, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  await Promise.all(files.map(compress));
  await rm(DIST, { recursive: true, force: true });
  await rename(NEW, DIST);
}

async function sdk() {
  const entryPoints = ["sdk/src/index.ts"];
  await build({ ...COMMON, entryPoints, outfile: join(ASSETS, "sdk.js") });
  await build({ ...COMMON, entryPoints, outfile: "sdk/dist/sdk.js", minify: false });
  const shared = ["sdk/src/gpu-p2p/index.ts"];
  await build({ ...COMMON, entryPoints: shared, outfile: join(ASSETS, "gpu-p2p.js") });
  await build({ ...COMMON, entryPoints: shared, outfile: "sdk/dist/gpu-p2p.js", minify: false });
}

async function workers() {
  // Those a Worker or page imports when it needs them.
  const entryPoints = { hash: "sdk/src/hash.ts", vision: "sdk/src/vision.ts", crew: "sdk/src/workers/crew/index.ts", radio: "sdk/src/join/radio.ts" };
  const runtimes = { "ort-worker": "sdk/src/workers/ort.ts", "ort-webgpu-worker": "sdk/src/workers/ort-webgpu.ts" };
  await build({ ...COMMON, entryPoints: runtimes, outdir: ASSETS, conditions: [...COMMON.conditions, EXTERN], legalComments: "inline" });
  for (const name of ["brain", "gpu", "wasi", "onnx", "llm", "llm-gpu", "keep"]) {
    entryPoints[`${name}-worker`] = `sdk/src/workers/${name}.ts`;
  }
  entryPoints["talk-worker"] = "sdk/src/gpu-p2p/talker.ts";
  await build({ ...COMMON, entryPoints, outdir: ASSETS });
}

async function app() {
  const folder = join(WEB, "app");
  if (!existsSync(join(folder, "package.json"))) return;
  const { entries = {} } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const entryPoints = Object.fromEntries(
    Object.entries(entries)
      .map(([name, path]) => [name, join(folder, path)])
      .filter(([, path]) => existsSync(path)),
  );
  await build({
    ...COMMON,
    entryPoints,
    outdir: ASSETS,
    // Served beside the bundles; styles name them by address.
    external: ["/assets/*"],
  });
  await copyFiles(folder, NEW, (name) => name.endsWith(".html"));
  // The model of the classifier page, so that nobody has to fetch one.
  await copyFile(join(WEB, "../examples/cifar10/cifar10.onnx"), join(ASSETS, "cifar10.onnx"));
  if (existsSync(join(folder, "public"))) await copyFiles(join(folder, "public"), ASSETS, () => true);
}

async function wasm() {
  for (const name of MODULES) {
    const file = `${name}_bg.wasm`;
    await copyFile(join(GENERATED, name, file), join(ASSETS, file));
  }
  const [from, to] = RELAXED;
  await copyFile(join(GENERATED, from), join(ASSETS, to));
  for (const [name, own] of Object.entries(ORT_FILES)) {
    await writeFile(join(ASSETS, `${own}.js`), ORT_NOTICE + (await readFile(join(ORT, `${name}.mjs`), "utf8")));
    await copyFile(join(ORT, `${name}.wasm`), join(ASSETS, `${own}.wasm`));
  }
}

async function copyFiles(from, to, wanted) {
  const entries = await readdir(from, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile() && wanted(entry.name));
  await Promise.all(names.map(({ name }) => copyFile(join(from, name), join(to, name))));
}

/** Browsers take Brotli where they have WebGPU too: over HTTPS and from this machine. The others get gzip. */
async function compress(path) {
  const bytes = await readFile(path);
  if (bytes.length < SMALLEST_PACKED) return;
  const packed = await promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION });
  if (packed.length < bytes.length) await writeFile(`${path}.gz`, packed);
  if (bytes.length <= LARGEST_BROTLI) {
    const smaller = await promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } });
    if (smaller.length < packed.length) await writeFile(`${path}.br`, smaller);
  }
  if (ONLY_GZIP.has(basename(path))) await rm(path);
}

await main();
