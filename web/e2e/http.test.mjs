// The HTTP API is what its description says: schemathesis makes requests of the description, and looks at what comes back.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { it } from "node:test";

import { folder, ROOT } from "./lib/places.mjs";
import { serve } from "./lib/processes.mjs";

const PYTHON = process.env.SHOAL_CLIENTS;
/** Of each operation: all together take about ten seconds. */
const EXAMPLES = 8;
/** Pages are for people, sockets and sessions for nodes; streams have no end, and other protocols have tests with their own clients. */
const OTHERS = "^/(node|v1|v2|join|jobs|chat|classify|detect|playground|assets|$)|events$|field$";

it("schemathesis finds nothing", { skip: PYTHON === undefined && "cargo xtask test names its Python" }, async (t) => {
  const here = folder(t);
  const pool = await serve(t, join(here, "pool"));
  const words = [
    "--config-file", join(ROOT, "web/e2e/lib/schemathesis.toml"), "run", `${pool.url}/api/v1/openapi.json`,
    "--header", `Authorization: Bearer ${pool.key}`, "--checks", "all", "--phases", "examples,fuzzing",
    "--max-examples", String(EXAMPLES), "--seed", "1", "--exclude-path-regex", OTHERS, "--no-color",
  ];
  const { code, text } = await new Promise((resolve) => {
    execFile(join(dirname(PYTHON), "schemathesis"), words, { cwd: here, maxBuffer: 64 << 20 }, (error, out, said) =>
      resolve({ code: error?.code ?? 0, text: out + said }),
    );
  });
  assert.equal(code, 0, text.slice(-8_000));
  assert.match(text, /Tested: +[2-9]\d/);
});
