/** A real coordinator in a folder of its own, and native nodes for it. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BINARY = process.env.SHOAL_BIN ?? new URL("../../../target/release/shoal", import.meta.url).pathname;
const START_MS = 20_000;

/** `{url, key, token, joinLink, data, child, restart(), close()}`. `data` and `listen` may be given to start anew on them. */
export async function startCoordinator({ data, listen = "127.0.0.1:0", args = [] } = {}) {
  if (!existsSync(BINARY)) throw new Error(`${BINARY} is missing: cargo build --release`);
  const folder = data ?? (await mkdtemp(join(tmpdir(), "shoal-")));
  const child = run(["serve", "--data", folder, "--listen", listen, ...args]);
  const said = await running(folder, child);
  const token = new URL(said.join).hash.slice(1);
  return {
    url: said.url,
    key: said.key,
    token,
    joinLink: said.join,
    data: folder,
    child,
    /** Ends it as a power cut would, and starts another on the same data and port. */
    restart: async () => {
      await end(child, "SIGKILL");
      await rm(join(folder, "running.json"), { force: true });
      return startCoordinator({ data: folder, listen: new URL(said.url).host, args });
    },
    close: async () => {
      await end(child, "SIGTERM");
      if (!data) await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A native node; `close` kills it. */
export async function startNode(joinLink, args = []) {
  const data = await mkdtemp(join(tmpdir(), "shoal-node-"));
  const child = run(["join", joinLink, "--data", data, ...args]);
  return {
    child,
    close: async (signal = "SIGTERM") => {
      await end(child, signal);
      await rm(data, { recursive: true, force: true });
    },
  };
}

function run(args) {
  const child = spawn(BINARY, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (bytes) => {
      child.log = (child.log + bytes).slice(-20_000);
      if (process.env.SHOAL_LOG) process.stderr.write(bytes);
    });
  }
  return child;
}

async function running(folder, child) {
  const path = join(folder, "running.json");
  for (const start = Date.now(); Date.now() - start < START_MS; ) {
    if (child.exitCode !== null) throw new Error(`the coordinator ended:\n${child.log}`);
    const text = await readFile(path, "utf8").catch(() => "");
    if (text) {
      const said = JSON.parse(text);
      if (said.pid === child.pid) return said;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`the coordinator did not start in ${START_MS / 1000} s:\n${child.log}`);
}

async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(late);
}
