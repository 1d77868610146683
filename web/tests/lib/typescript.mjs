/** Loads TypeScript modules of the SDK into Node. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** All exports of files below `web/sdk/src`, together. */
export async function load(...paths) {
  const resolveDir = fileURLToPath(new URL("../../sdk/src", import.meta.url));
  const contents = paths.map((path) => `export * from "./${path}";`).join("\n");
  const options = { bundle: true, format: "esm", platform: "neutral", target: "es2022", write: false };
  const stdin = { contents, resolveDir, loader: "ts" };
  const { outputFiles } = await build({ stdin, mainFields: ["module", "main"], ...options });
  const folder = await mkdtemp(join(tmpdir(), "shoal-ts-"));
  const file = join(folder, "module.mjs");
  await writeFile(file, outputFiles[0].text);
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
