// What a job can show for itself: the reasons, and a receipt that holds by its files and the coordinator's public key alone.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { SHOAL } from "./places.mjs";

/** Checks the receipt and the explanation of an ended job; gives the receipt. `files` has what its maker kept: `code`, `inputs`. */
export async function assertProven(pool, data, id, files = {}) {
  const run = (...words) =>
    execFileSync(SHOAL, words.map(String), {
      env: { ...process.env, SHOAL_URL: pool.url, SHOAL_KEY: pool.key, SHOAL_DATA: join(data, "elsewhere") },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
  const job = await pool.api.job(id);
  const lines = await pool.api.explain(`jobs/${id}`);
  assert.ok(lines.length > 1, `job ${id} is not explained: ${lines}`);
  assert.deepEqual(run("explain", id).trimEnd().split("\n"), lines);

  const path = (name) => join(data, `${name} of job ${id}`);
  const what = job.kind === "render" ? "picture.png" : "result";
  const answer = await pool.api.ask("GET", `/api/v1/jobs/${id}/${what}`);
  const result = path(what);
  writeFileSync(result, Buffer.from(await answer.arrayBuffer()));
  run("receipt", id, "-o", path("receipt.json"));
  const { key } = await pool.api.json("GET", "/api/v1/pool");
  const given = ["--key", key, "--result", result];
  if (files.code) {
    writeFileSync(path("code"), files.code);
    given.push("--code", path("code"));
  }
  for (const [at, bytes] of (files.inputs ?? []).entries()) {
    writeFileSync(path(`input ${at}`), bytes);
    given.push("--input", path(`input ${at}`));
  }
  assert.match(run("verify", path("receipt.json"), ...given), /the receipt is valid/);

  // One other bit in the result, and it does not.
  const bytes = readFileSync(result);
  if (what === "result") {
    bytes[bytes.length >> 1] ^= 1;
    writeFileSync(result, bytes);
    assert.throws(() => run("verify", path("receipt.json"), ...given), { status: 1 });
  }
  return JSON.parse(readFileSync(path("receipt.json"), "utf8")).receipt;
}
