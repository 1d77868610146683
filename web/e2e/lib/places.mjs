// Where things are: the repository, what was built from it, and folders that go with their test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
export const SHOAL = process.env.SHOAL_BIN ?? join(ROOT, "target/release/shoal");
export const KERNELS = join(ROOT, "examples/kernels");
export const PROGRAMS = join(ROOT, "examples/programs/target");

/** A fresh folder, removed when the test ends. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "shoal-e2e-"));
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}
