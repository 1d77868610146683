// A native node that talks: `shoal talk`, which takes orders in lines and answers in JSON.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { SHOAL } from "../lib/places.mjs";

/** Longer than any measurement on a busy machine takes. */
const PATIENCE_MS = 120_000;
const AGAIN_MS = 100;

export function talker(link, data, words) {
  const stdio = ["pipe", "pipe", "inherit"];
  const child = spawn(SHOAL, ["talk", link, "--data", data, ...words], { stdio, env: { ...process.env, RUST_LOG: "warn" } });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const waiting = new Map();
  let via = "relay";
  createInterface(child.stdout).on("line", (line) => {
    for (const [key, value] of Object.entries(JSON.parse(line))) {
      if (key === "via") via = value;
      if (key === "notMet") setTimeout(() => tell(`meet ${value}`), AGAIN_MS);
      else waiting.get(key === "via" ? value : key)?.(value);
    }
  });
  const tell = (order) => child.stdin.write(`${order}\n`);
  /** The next answer of that name. */
  const next = (key) =>
    new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`shoal talk did not say ${key}`)), PATIENCE_MS);
      waiting.set(key, (value) => {
        clearTimeout(late);
        resolve(value);
      });
      ended.then(() => {
        clearTimeout(late);
        reject(new Error("shoal talk ended"));
      });
    });
  const ask = (order, key) => {
    const answer = next(key);
    tell(order);
    return answer;
  };
  const [joined, direct] = [next("node"), next("direct")];
  // Not everybody waits for it.
  direct.catch(() => undefined);
  joined.catch(() => undefined);
  return {
    joined,
    direct,
    meet: (peer) => ask(`meet ${peer}`, "met"),
    trips: ({ count, size }) => ask(`trips ${count} ${size}`, "trips"),
    flow: ({ bytes, message, ahead }) => ask(`flow ${bytes} ${message} ${ahead}`, "seconds"),
    via: () => via,
    async close() {
      child.stdin.end();
      const late = setTimeout(() => child.kill("SIGKILL"), 3_000);
      await ended;
      clearTimeout(late);
    },
  };
}
