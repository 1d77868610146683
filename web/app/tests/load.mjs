/** Bundles a module of the app so that Node can run it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const SRC = fileURLToPath(new URL("../src/", import.meta.url));

export async function load(path) {
  const folder = await mkdtemp(join(tmpdir(), "shoal-app-"));
  const outfile = join(folder, "module.mjs");
  await build({
    entryPoints: [join(SRC, path)],
    outfile,
    bundle: true,
    format: "esm",
    conditions: ["source"],
    loader: { ".wgsl": "text" },
    logLevel: "error",
  });
  try {
    return await import(pathToFileURL(outfile).href);
  } finally {
    await rm(folder, { recursive: true });
  }
}
