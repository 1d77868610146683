// A program that stays and answers: in tabs and on a machine, while they come and go.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { folder, PROGRAMS } from "./lib/places.mjs";
import { kill, native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { execJob, primeCounts } from "./lib/work.mjs";

async function service(api, rest, program = "shout") {
  const module = await api.blob(readFileSync(join(PROGRAMS, `${program}.wasm`)));
  return api.json("POST", "/api/v1/services", { name: program, kind: "exec", module, ...rest });
}

const ask = async (api, text) => (await api.ask("POST", "/api/v1/services/shout", text)).text();

/** The nodes that are ready to answer. */
async function ready(api) {
  const { services } = await api.json("GET", "/api/v1/services");
  return services[0].replicas.filter((replica) => replica.ready).map((replica) => replica.node);
}

it("a tab serves, its donor sees it, and a machine takes over", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const { page, node } = await tab(await browser(t), pool);
  await service(pool.api, { strangers: true, owner: "the tests" });
  assert.equal(await ask(pool.api, "from a tab"), "FROM A TAB");
  assert.deepEqual(await ready(pool.api), [node.id]);
  const kept = page.getByRole("list", { name: "Kept ready" });
  await kept.getByText("shout").waitFor();
  await kept.getByText("256 MiB").waitFor();
  const large = "word ".repeat(60_000);
  assert.equal(await ask(pool.api, large), large.toUpperCase());
  const machine = await native(t, pool, join(data, "node"));
  await page.close();
  assert.equal(await ask(pool.api, "from a machine"), "FROM A MACHINE");
  assert.deepEqual(await ready(pool.api), [machine.node.id]);
});

it("an answer comes while its program still computes, from a tab and from a machine", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const { page } = await tab(await browser(t), pool);
  await service(pool.api, { strangers: true }, "primes");
  // Each line takes far longer than what is said together.
  const limits = Array.from({ length: 4 }, (_, at) => 30_000_000 + at);
  const right = primeCounts(limits).map((count) => `${count}\n`).join("");
  const inParts = async () => {
    const answer = await pool.api.ask("POST", "/api/v1/services/primes", limits.map((limit) => `${limit}\n`).join(""));
    const parts = [];
    for await (const part of answer.body) parts.push(Buffer.from(part));
    assert.equal(Buffer.concat(parts).toString(), right);
    return parts.length;
  };
  assert.ok((await inParts()) > 1, "a tab says all at its end");
  await native(t, pool, join(data, "node"));
  await page.close();
  assert.ok((await inParts()) > 1, "a machine says all at its end");
});

it("requests are answered in a tab that computes a job, and the job is whole", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const { node } = await tab(await browser(t), pool);
  await service(pool.api, { strangers: true });
  const { id, check } = await execJob(pool.api);
  for (let at = 0; at < 5; at++) assert.equal(await ask(pool.api, `request ${at}`), `REQUEST ${at}`);
  assert.deepEqual(await ready(pool.api), [node.id]);
  await pool.api.done(id);
  check(await pool.api.result(id));
});

it("requests survive the loss of the machine that works on them", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "first"));
  await service(pool.api, { strangers: true, least: 2, most: 2 });
  await native(t, pool, join(data, "second"));
  await until("both to be ready", async () => (await ready(pool.api)).length === 2);
  const asked = Array.from({ length: 40 }, (_, at) => ask(pool.api, `request ${at}`));
  await kill(machine.child);
  assert.deepEqual(await Promise.all(asked), Array.from(asked, (_, at) => `REQUEST ${at}`));
});
