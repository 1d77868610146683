// A model in two slices: one on a machine, one in a tab that joined by the join page like any other. The tab closes while
// pictures stream through both. And in two of three tabs, asked by a page that gives each picture a budget.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { folder, ROOT } from "./lib/places.mjs";
import { native, serve } from "./lib/processes.mjs";
import { browser, tab } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";

const PIXELS = 3 * 32 * 32;
/** A machine and a tab add up in different orders. */
const NEAR = 1e-3;
const FRAMES = 32;
/** Of each picture that the page asks for: far less than it takes until a request without a budget is given up. */
const BUDGET_MS = 8_000;

/** A picture that no other number has. */
function picture(number) {
  return Array.from({ length: PIXELS }, (_, at) => ((at * 31 + number * 977) % 256) / 255);
}

/** What the model says of it, and through how many devices that went. */
async function ask(api, name, number) {
  const inputs = [{ name: "image", shape: [1, 3, 32, 32], datatype: "FP32", data: picture(number) }];
  const answer = await api.ask("POST", `/v2/models/${name}/infer`, JSON.stringify({ id: String(number), inputs }));
  const { id, outputs } = await answer.json();
  assert.equal(id, String(number));
  return { numbers: outputs[0].data, stages: Number(answer.headers.get("x-shoal-stages")) };
}

function near({ numbers }, expected) {
  assert.equal(numbers.length, 10);
  numbers.forEach((one, at) => assert.ok(Math.abs(one - expected[at]) <= NEAR, `${one} is not ${expected[at]}`));
}

/** What the whole model says, and a way to add it in slices. */
async function prepared(pool, count) {
  const model = await pool.api.blob(readFileSync(join(ROOT, "examples/cifar10/cifar10.onnx")));
  const add = (name, rest) => pool.api.json("POST", "/api/v1/services", { kind: "onnx", name, model, strangers: true, ...rest });
  await add("whole", {});
  const right = [];
  for (let at = 0; at < count; at++) right.push((await ask(pool.api, "whole", at)).numbers);
  await pool.api.ask("DELETE", "/api/v1/services/whole");
  return { right, slice: () => add("sliced", { split: "2", shapes: { image: [1, 3, 32, 32] } }) };
}

async function sliced(api) {
  return (await api.json("GET", "/api/v1/services")).services.find(({ name }) => name === "sliced");
}

function inSlices(api) {
  return until("two slices", async () => {
    const { crew } = await sliced(api);
    return crew?.ready && crew;
  }, 120);
}

it("a machine and a joined tab hold a slice each, and every frame is answered once while the tab closes", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const { page, node } = await tab(await browser(t), pool);
  const { right, slice } = await prepared(pool, FRAMES);
  await slice();
  const { stages } = await inSlices(pool.api);
  assert.deepEqual(stages.map((stage) => stage.node).sort(), [machine.node.id, node.id].sort());
  await page.getByRole("list", { name: "Together with other devices" }).getByText("a slice of a model").waitFor();
  for (let at = 0; at < 3; at++) {
    const answer = await ask(pool.api, "sliced", at);
    near(answer, right[at]);
    assert.equal(answer.stages, 2);
  }

  const stream = Array.from({ length: FRAMES }, (_, at) => ask(pool.api, "sliced", at));
  await stream[2];
  await page.close();
  (await Promise.all(stream)).forEach((answer, at) => near(answer, right[at]));
  // The machine has all of it now, and none was answered twice.
  near(await ask(pool.api, "sliced", 5), right[5]);
  const { answered, failed } = await sliced(pool.api);
  assert.deepEqual([answered, failed], [3 + FRAMES + 1, 0]);
});

it("a page that gives each picture a budget has every answer in time while a slice's tab closes", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const window = await browser(t);
  const tabs = [await tab(window, pool), await tab(window, pool), await tab(window, pool)];
  const { right, slice } = await prepared(pool, FRAMES);
  await slice();
  const { stages } = await inSlices(pool.api);

  // A page that cannot have the model itself, so that all depends on the pool.
  const page = await (await window.newContext()).newPage();
  await page.route(/\/blobs\//, (route) => route.abort());
  await page.goto(pool.url);
  await page.evaluate(async (key) => {
    const { connect } = await import(`${location.origin}/assets/sdk.js`);
    globalThis.model = await (await connect(location.origin, key)).model("sliced");
  }, pool.api.key);
  const see = (at) => page.evaluate(async ([numbers, budgetMs]) => {
    const { outputs, ran } = await globalThis.model.run({ image: Float32Array.from(numbers) }, { where: "auto", budgetMs });
    return { numbers: [...Object.values(outputs)[0].data], where: ran.where };
  }, [picture(at), BUDGET_MS]);
  const first = await see(0);
  near(first, right[0]);
  assert.equal(first.where, "split");
  // The third tab makes all of it ready meanwhile.
  await until("one that stands in", async () => (await sliced(pool.api)).replicas.some(({ ready }) => ready), 120);

  const closing = tabs.find(({ node }) => node.id === stages[1].node);
  const where = [];
  for (let at = 0; at < FRAMES; at++) {
    const [answer] = await Promise.all([see(at), at === 4 ? closing.page.close() : undefined]);
    near(answer, right[at]);
    where.push(answer.where);
  }
  assert.deepEqual([where[0], where.at(-1)], ["split", "remote"], where.join(" "));
});
