// Where things are: the repository, what was built from it, and folders that go with their test.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { after } from "../../tests/lib/after.mjs";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
export const SHOAL = process.env.SHOAL_BIN ?? join(ROOT, "target/release/shoal");
export const KERNELS = join(ROOT, "examples/kernels");
export const PROGRAMS = join(ROOT, "examples/programs/target");

/** A fresh folder, removed when the test ends and all that it started. One that cannot be removed is no fault of what was tested. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "shoal-e2e-"));
  after(t, () => {
    try {
      rmSync(path, { recursive: true, force: true, maxRetries: 5 });
    } catch (error) {
      console.error(`${path} is left behind: ${error.message}`);
    }
  });
  return path;
}
