// A tab that lends without anybody watching: a driven browser reports every request and its bytes to its driver,
// which costs more than the units themselves.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromiumPath, FLAGS } from "../../tests/lib/chromium.mjs";
import { until } from "../lib/until.mjs";

/** Opens a page of another site that lends this browser by the SDK; `close()` ends it. */
export async function plainTab(api, link) {
  const { origin: url, hash } = new URL(link);
  const before = (await api.nodes()).length;
  const page = `<!doctype html><title>lends</title><script type="module">
    import { join } from "${url}/assets/sdk.js";
    await join({ url: "${url}", token: "${hash.slice(1)}", gpu: true, cpu: 1 });
  </script>`;
  const isolated = {
    "content-type": "text/html",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
  };
  const server = createServer((_, response) => response.writeHead(200, isolated).end(page));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

  const profile = mkdtempSync(join(tmpdir(), "shoal-tab-"));
  const words = ["--headless=new", ...FLAGS, `--user-data-dir=${profile}`];
  const child = spawn(chromiumPath(), [...words, `http://127.0.0.1:${server.address().port}/`], {
    stdio: "ignore",
    detached: true,
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  await until("the tab to join", async () => (await api.nodes()).length > before, 30);

  return async function close() {
    // All of its processes at once: each still writes into the profile.
    process.kill(-child.pid, "SIGKILL");
    await ended;
    server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
}
