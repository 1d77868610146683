// One device lies, among honest ones that are strangers too: no wrong byte reaches a result, and each job can show why.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { Api } from "./lib/api.mjs";
import { knownExec, knownMap, knownRender } from "./lib/known.mjs";
import { folder, KERNELS } from "./lib/places.mjs";
import { kill, native, serve, start } from "./lib/processes.mjs";
import { assertProven } from "./lib/receipts.mjs";
import { stranger } from "./lib/stranger.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { assertWhole } from "./lib/work.mjs";

/** Ways to lie, by what is right and what the liar said last. */
const LIES = {
  anything: (right) => Buffer.from(right).map((byte, at) => byte ^ (1 + ((at * 31 + right.length) % 255))),
  "one bit": (right) => {
    const lie = Buffer.from(right);
    lie[lie.length - 2] ^= lie.length > 4000 ? 0x80 : 1;
    return lie;
  },
  "an old answer": (right, old) => (old?.length === right.length && !old.equals(right) ? old : LIES.anything(right)),
};

/** An exec's answer begins with lengths, which must fit: those it leaves alone. */
const headOf = (job, { len }) => (job.kind === "exec" ? 4 * len : 0);

/** A node that knows what is right, and says something else in each of these ways in turn. */
function liar(t, pool, known, name, numericClass) {
  const ways = Object.values(LIES);
  let [count, old] = [0, undefined];
  const answer = (job, span) => {
    const right = known.answer(span);
    const head = headOf(job, span);
    const lie = ways[count++ % ways.length](right.subarray(head), old);
    old ??= Buffer.from(right.subarray(head));
    return Buffer.concat([right.subarray(0, head), lie]);
  };
  return stranger(t, pool, { name, answer, class: numericClass });
}

/** Items of the result that are this node's. */
const shareOf = (job, { id }) => job.shares.find((share) => share.node === id)?.items ?? 0;

const [MAP, RENDER, EXEC] = [knownMap(), knownRender(), knownExec()];
const JOBS = [
  { what: "a map", lane: "gpu", known: MAP, verify: "adaptive" },
  { what: "a render", lane: "gpu", known: RENDER, verify: "adaptive" },
  { what: "an exec", lane: "cpu", known: EXEC, verify: "adaptive" },
  { what: "a map by votes", lane: "gpu", known: MAP, verify: "quorum:3" },
];

/** Among people who all just came nobody's word weighs more: enough honest ones outweigh the liar, but it is not named. */
async function amongNew(t, { pool, honest }) {
  const bad = await liar(t, pool, MAP, "an early liar");
  const { id } = await MAP.submit(pool.api, { verify: "adaptive" });
  const job = await pool.api.done(id);
  MAP.check(await pool.api.result(id));
  assert.ok(bad.answered > 0, "nobody asked the liar");
  assert.equal(shareOf(job, bad.node), 0, "a lie was merged");
  for (const { id } of honest) assert.equal((await pool.api.node(id)).trust.gpu.wrong, 0);
}

/**
 * Honest work until everybody's word has some weight, in both kinds of work. A few strangers earn nothing by confirming each
 * other, so one of the operator's own nodes is there for that time. All of them compute every unit: who is quicker than a tab
 * would leave it nothing to show otherwise.
 */
async function growOld(t, { pool, data, honest }) {
  const own = await native(t, pool, join(data, "own"), ["--key", pool.key]);
  const verify = `quorum:${honest.length + 1}`;
  await until("the honest to be trusted", async () => {
    for (const known of [MAP, EXEC]) {
      const { id } = await known.submit(pool.api, { verify });
      await pool.api.done(id);
      known.check(await pool.api.result(id));
    }
    const nodes = await Promise.all(honest.map(({ id }) => pool.api.node(id)));
    for (const { name, trust } of nodes) t.diagnostic(`${name}: ${JSON.stringify(trust)}`);
    return nodes.every(({ trust, trusted }) => trusted || (trust.gpu.veteran && trust.cpu.veteran));
  });
  await kill(own.child);
}

/** Runs each kind of job among these honest nodes and a liar that has just come. */
async function everyKind(t, { pool, data, honest }) {
  for (const { what, lane, known, verify } of JOBS) {
    await t.test(`${what}, ${verify}`, async (t) => {
      // It claims to compute like a tab, so that no difference passes for another way to round.
      const { class: numericClass } = await pool.api.node(honest.at(-1).id);
      const bad = await liar(t, pool, known, `liar of ${what}`, BigInt(`0x${numericClass}`));
      const { id } = await known.submit(pool.api, { verify, name: what });
      const job = await pool.api.done(id);
      known.check(await pool.api.result(id));
      assertWhole(job);
      assert.ok(bad.answered > 0, "nobody asked the liar");
      assert.equal(shareOf(job, bad.node), 0, "a lie was merged");
      const receipt = await assertProven(pool, data, id, known);
      const counted = receipt.units.flatMap(({ node, checkedBy }) => [node, ...checkedBy]);
      assert.ok(!counted.includes(bad.node.id), "a lie counted");
      for (const { id } of honest) {
        const { trust, name } = await pool.api.node(id);
        assert.equal(trust[lane].wrong, 0, `${name} is called a liar`);
      }
      // Who is asked decides how soon it is named; until then its lies are outvoted.
      await until("the liar to be found out", async () => {
        const { trust } = await pool.api.node(bad.node.id);
        t.diagnostic(`${bad.answered} lies, trust ${JSON.stringify(trust[lane])}`);
        if (trust[lane].wrong > 0) return true;
        const again = await known.submit(pool.api, { verify, name: what });
        await pool.api.done(again.id);
        known.check(await pool.api.result(again.id));
        return false;
      });
      const words = (await pool.api.explain(`nodes/${bad.node.id}`)).join("\n");
      assert.match(words, /wrong/);
    });
  }
}

async function addTabs(t, pool) {
  const chromium = await browser(t);
  return [(await tab(chromium, pool)).node, (await tab(chromium, pool)).node];
}

it("a liar among strangers", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const honest = [machine.node, ...(await addTabs(t, pool))];
  assert.ok(honest.every((node) => !node.trusted), "a stranger is trusted");
  await t.test("where all are new", (t) => amongNew(t, { pool, honest }));
  await growOld(t, { pool, data, honest });
  await everyKind(t, { pool, data, honest });
  await t.test("floats, which two kinds of GPU round differently", (t) => floats(t, { pool, honest }));
});

it("a liar beside the operator's own node", async (t) => {
  const data = folder(t);
  start(t, ["up", "--listen", "127.0.0.1:0", "--data", join(data, "pool"), "--no-demo"]);
  const running = await until("the pool", () => JSON.parse(readFileSync(join(data, "pool/running.json"), "utf8")), 30);
  const pool = { ...running, api: new Api(running.url, running.key) };
  const [own] = await until("its node", async () => {
    const nodes = await pool.api.nodes();
    return nodes.length > 0 && nodes;
  });
  assert.ok(own.trusted, "the operator's own node is a stranger");
  const honest = [own, ...(await addTabs(t, pool))];
  await everyKind(t, { pool, data, honest });
});

/** Sums of sines: lavapipe and SwiftShader differ in the last bits, and nobody may be called a liar for that. */
async function floats(t, { pool, honest }) {
  const items = 1 << 16;
  const input = Float32Array.from({ length: items }, (_, i) => i * 0.01);
  const wave = (x, length, height, phase) => height * Math.sin((x * 6.2831853) / length + phase);
  const right = input.map((x) => wave(x, 8, 1, 0) + wave(x, 3.1, 0.4, 1.3) + wave(x, 1.7, 0.2, 0.7) + wave(x, 0.61, 0.05, 2.9));
  const bad = await stranger(t, pool, {
    name: "liar about floats",
    answer: (_job, { start, len }) => Buffer.from(right.slice(start, start + len).map((y) => y + 0.01).buffer),
  });
  const wgsl = readFileSync(join(KERNELS, "wave.wgsl"), "utf8");
  const blob = await pool.api.blob(Buffer.from(input.buffer));
  const tolerance = { abs: 1e-3 };
  const { id } = await pool.api.submit({ kind: "map", wgsl, inputs: [{ blob }], unit: 1 << 11, verify: "adaptive", tolerance });
  await pool.api.done(id);
  const output = new Float32Array(await pool.api.result(id));
  right.forEach((y, i) => assert.ok(Math.abs(output[i] - y) < 3e-3, `item ${i}: ${output[i]} instead of ${y}`));
  assert.ok(bad.answered > 0, "nobody asked the liar");
  const classes = new Set();
  for (const { id } of honest) {
    const node = await pool.api.node(id);
    classes.add(node.class);
    assert.equal(node.trust.gpu.wrong, 0, `${node.name} is called a liar`);
  }
  assert.equal(classes.size, 2, "two kinds of GPU, two classes");
}
