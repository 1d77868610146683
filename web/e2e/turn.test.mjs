// Two tabs that reach each other through a TURN server alone, with names and passwords that the coordinator was given or makes;
// and what happens where the server does not let them in or is not there: links go on by the coordinator's own relay.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { coturn, freePort } from "./lib/coturn.mjs";
import { folder, ROOT } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";

const source = readFileSync(join(ROOT, "examples/kernels/fluid.wgsl"), "utf8");
const fluid = (pool, steps) =>
  pool.api.submit({ kind: "sim", name: "fluid", source, width: 96, height: 128, steps, members: 2, keepEvery: 0 });

const ways = [
  ["a name and a password", ["--user", "crab:claw"], "crab claw"],
  ["a shared secret", ["--use-auth-secret", "--static-auth-secret", "north"], "secret:north"],
];

for (const [what, words, given] of ways) {
  it(`two tabs that only TURN brings together have a direct link, by ${what}`, async (t) => {
    const server = await coturn(t, words);
    const pool = await serve(t, join(folder(t), "pool"), 0, ["--turn", `${server.url} ${given}`]);
    const strict = await strictBrowser(t);
    const tabs = [await tab(strict, pool), await tab(strict, pool)];
    const { id } = await fluid(pool, 100_000);
    await directLinks(pool, id);
    for (const { page } of tabs) {
      const kinds = await page.evaluate(selected);
      assert.deepEqual(kinds, ["relay"], "the way that is used goes through the server");
    }
    assert.match(server.said, /ALLOCATE processed, success/, server.said.slice(-2000));
    await until("halos on that way", async () => (await linksOf(pool, id)).every(({ direct }) => direct > 1_000_000));
    await pool.api.json("POST", `/api/v1/jobs/${id}/cancel`);
  });
}

it("a tab that only TURN lets out and a native node have a direct link", async (t) => {
  const server = await coturn(t, ["--use-auth-secret", "--static-auth-secret", "north"]);
  const pool = await serve(t, join(folder(t), "pool"), 0, ["--turn", `${server.url} secret:north`]);
  const { page } = await tab(await strictBrowser(t), pool);
  const machine = await native(t, pool, join(folder(t), "node"));
  const { id } = await fluid(pool, 100_000);
  await directLinks(pool, id);
  assert.deepEqual(await page.evaluate(selected), ["relay"]);
  const names = new Set(server.said.match(/user <\d+:\d+>/g));
  assert.ok(names.size >= 2, `the native node has an address there too: ${[...names]}`);
  assert.equal(machine.child.said.match(/TURN server/), null, "nothing to complain of");
  await pool.api.json("POST", `/api/v1/jobs/${id}/cancel`);
});

it("a wrong password and a server that is not there cost nothing but the direct way", async (t) => {
  const server = await coturn(t, ["--user", "crab:claw"]);
  const dead = `turn:127.0.0.1:${await freePort()}?transport=udp`;
  const words = ["--turn", `${server.url} crab pincer`, "--turn", `${dead} crab claw`];
  const pool = await serve(t, join(folder(t), "pool"), 0, words);
  const strict = await strictBrowser(t);
  const { page } = await tab(strict, pool);
  const machine = await native(t, pool, join(folder(t), "node"));
  const { id } = await fluid(pool, 100_000);
  await until("the node to say what is wrong", () =>
    machine.child.said.includes(`${server.url}: it refuses the name and the password; links go on without it`) &&
    machine.child.said.includes(`${dead}: it does not answer; links go on without it`));
  const { sim } = await pool.api.job(id);
  await until("steps by the coordinator's relay", async () => (await pool.api.job(id)).sim.step > sim.step + 50);
  assert.deepEqual(await page.evaluate(selected), [], "the tab found no way either");
  assert.deepEqual((await linksOf(pool, id)).map(({ via }) => via), ["relay", "relay"]);
  const complaints = machine.child.said.match(/TURN server/g);
  assert.equal(complaints.length, 2, `each is said once: ${machine.child.said}`);
  await pool.api.json("POST", `/api/v1/jobs/${id}/cancel`);
});

/** Gathers candidates of TURN servers alone, like one whose network lets nothing else through. */
async function strictBrowser(t) {
  const chromium = await browser(t);
  return {
    newContext: async () => {
      const context = await chromium.newContext();
      await context.addInitScript(() => {
        globalThis.peers = [];
        globalThis.RTCPeerConnection = class extends RTCPeerConnection {
          constructor(config) {
            super({ ...config, iceTransportPolicy: "relay" });
            globalThis.peers.push(this);
          }
        };
      });
      return context;
    },
  };
}

/** In the page: of which kind its own candidates are on the ways in use. */
async function selected() {
  const kinds = new Set();
  for (const peer of globalThis.peers) {
    const stats = await peer.getStats();
    for (const each of stats.values()) {
      const pair = each.type === "transport" && stats.get(each.selectedCandidatePairId);
      if (pair && pair.state === "succeeded") kinds.add(stats.get(pair.localCandidateId).candidateType);
    }
  }
  return [...kinds];
}

const directLinks = (pool, id) =>
  until("direct links", async () => {
    const links = await linksOf(pool, id);
    return links.length >= 2 && links.every(({ via }) => via === "direct");
  }, 120);

async function linksOf(pool, id) {
  const { sim } = await pool.api.job(id);
  return sim.crew?.members.flatMap((member) => member.links) ?? [];
}
