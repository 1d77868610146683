// A model in two slices: one on a machine, one in a tab that joined by the join page like any other. The tab closes while
// pictures stream through both.

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

it("a machine and a joined tab hold a slice each, and every frame is answered once while the tab closes", async (t) => {
  const data = folder(t);
  const pool = await serve(t, join(data, "pool"));
  const machine = await native(t, pool, join(data, "node"));
  const { page, node } = await tab(await browser(t), pool);
  const model = await pool.api.blob(readFileSync(join(ROOT, "examples/cifar10/cifar10.onnx")));
  const add = (name, rest) => pool.api.json("POST", "/api/v1/services", { kind: "onnx", name, model, strangers: true, ...rest });
  await add("whole", {});
  const right = [];
  for (let at = 0; at < FRAMES; at++) right.push((await ask(pool.api, "whole", at)).numbers);
  await pool.api.ask("DELETE", "/api/v1/services/whole");

  await add("sliced", { split: "2", shapes: { image: [1, 3, 32, 32] } });
  const service = async () => (await pool.api.json("GET", "/api/v1/services")).services.find(({ name }) => name === "sliced");
  const { stages } = await until("two slices", async () => {
    const { crew } = await service();
    return crew?.ready && crew;
  }, 120);
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
  const { answered, failed } = await service();
  assert.deepEqual([answered, failed], [3 + FRAMES + 1, 0]);
});
