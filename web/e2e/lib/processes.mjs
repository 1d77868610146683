// Real coordinators and native nodes, each a process of its own.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { after } from "../../tests/lib/after.mjs";
import { Api } from "./api.mjs";
import { SHOAL } from "./places.mjs";
import { Hopeless, until } from "./until.mjs";

/** What a GPU process may take to see that its node is gone. */
const CLOSE_MS = 10_000;

/** Starts `shoal` with these words; ended when the test ends. `said` and `printed` keep its stderr and stdout. */
export function start(t, words, env = {}) {
  const child = spawn(SHOAL, words, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, RUST_LOG: "warn", ...env },
  });
  child.printed = "";
  child.stdout.on("data", (text) => (child.printed = (child.printed + text).slice(-20_000)));
  child.said = "";
  child.stderr.on("data", (text) => (child.said = (child.said + text).slice(-4000)));
  child.ended = new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal })));
  after(t, () => kill(child));
  return child;
}

/** Like a crash or a pulled plug: no goodbye. What it started may hold its output open a little longer. */
export async function kill(child) {
  child.kill("SIGKILL");
  const late = setTimeout(() => {
    console.error(`somebody holds the output of a killed process ${child.pid} open`);
    child.stdout.destroy();
    child.stderr.destroy();
  }, CLOSE_MS);
  await child.ended.finally(() => clearTimeout(late));
}

/** A coordinator on this machine. `port` 0 takes a free one; the same `data` and port start it again. */
export async function serve(t, data, port = 0, words = []) {
  const child = start(t, ["serve", "--listen", `127.0.0.1:${port}`, "--data", data, ...words]);
  const running = await until("the coordinator", () => {
    if (child.exitCode !== null) throw new Hopeless(`it ended: ${child.said}`);
    const found = JSON.parse(readFileSync(join(data, "running.json"), "utf8"));
    return found.pid === child.pid ? found : undefined;
  }, 20);
  const api = new Api(running.url, running.key);
  return { child, api, ...running, port: Number(new URL(running.url).port) };
}

/** A native node, seen by the coordinator when this returns. */
export async function native(t, pool, data, words = []) {
  const name = `native-${Math.random().toString(36).slice(2, 8)}`;
  const child = start(t, ["join", pool.join, "--data", data, "--node-name", name, ...words]);
  const node = await until("the native node", async () => {
    if (child.exitCode !== null) throw new Hopeless(`it ended: ${child.said}`);
    return (await pool.api.nodes()).find((node) => node.name === name);
  }, 30);
  return { child, node };
}
