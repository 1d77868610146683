// The classifier in slices: three tabs of its page hold one each, and what they say together is what the whole model says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

import { folder, ROOT } from "./lib/places.mjs";
import { serve } from "./lib/processes.mjs";
import { browser } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";

const PIXELS = 3 * 32 * 32;
/** Float32 in slices and whole are rounded alike but where an engine fuses operators. */
const NEAR = 1e-4;

/** A tab of the classifier's page that lends itself. */
async function lend(window, pool) {
  const page = await (await window.newContext()).newPage();
  await page.goto(`${pool.url}/classify#key=${pool.api.key}`);
  await page.getByRole("button", { name: "Lend this tab" }).click();
  await page.getByRole("button", { name: "Stop lending this tab" }).waitFor();
  return page;
}

async function service(api, name = "classifier") {
  const { services } = await api.json("GET", "/api/v1/services");
  return services.find((service) => service.name === name);
}

async function crew(api) {
  return (await service(api))?.crew;
}

function inSlices(api) {
  return until("three slices", async () => {
    const found = await crew(api);
    return found?.ready && found.stages.length === 3 && found;
  }, 120);
}

/** A picture that no other number has. */
function picture(number) {
  return Array.from({ length: PIXELS }, (_, at) => ((at * 31 + number * 977) % 256) / 255);
}

async function ask(api, name, number) {
  const inputs = [{ name: "image", shape: [1, 3, 32, 32], datatype: "FP32", data: picture(number) }];
  const answer = await api.json("POST", `/v2/models/${name}/infer`, { id: String(number), inputs });
  assert.equal(answer.id, String(number));
  return answer.outputs[0].data;
}

function near(found, expected) {
  assert.equal(found.length, 10);
  found.forEach((one, at) => assert.ok(Math.abs(one - expected[at]) <= NEAR, `${one} is not ${expected[at]}`));
}

/** The whole model's answers, from one of the tabs. */
async function whole(api, count) {
  const model = await api.blob(readFileSync(join(ROOT, "examples/cifar10/cifar10.onnx")));
  await api.json("POST", "/api/v1/services", { kind: "onnx", name: "whole", model });
  const answers = [];
  for (let at = 0; at < count; at++) answers.push(await ask(api, "whole", at));
  await api.ask("DELETE", "/api/v1/services/whole");
  return answers;
}

it("three tabs hold a slice each and say what the whole model says, also while one of them closes", async (t) => {
  const pool = await serve(t, join(folder(t), "pool"));
  const window = await browser(t);
  const pages = [await lend(window, pool), await lend(window, pool), await lend(window, pool)];
  const { stages } = await inSlices(pool.api);
  assert.equal(new Set(stages.map(({ node }) => node)).size, 3);
  const count = 24;
  const right = await whole(pool.api, count);
  for (let at = 0; at < 6; at++) near(await ask(pool.api, "classifier", at), right[at]);

  // Every tab shows its own slice, and the links become direct.
  await until("direct links", async () => {
    await ask(pool.api, "classifier", 0);
    return (await crew(pool.api)).stages.slice(0, 2).every(({ via }) => via === "direct");
  }, 120);
  for (const page of pages) {
    await page.getByText("3 devices hold the model, a slice each.").waitFor();
    assert.equal(await page.locator(".chain > li").count(), 3);
    assert.equal(await page.locator(".chain > li.own").count(), 1);
  }
  const [first] = pages;
  const pad = first.locator("canvas.pad");
  await pad.hover();
  await first.mouse.down();
  await pad.hover({ position: { x: 40, y: 60 } });
  await first.mouse.up();
  await first.getByText("through 3 slices").waitFor();

  // A slice's tab closes while pictures stream through it: every one is answered, once and right.
  const before = await service(pool.api);
  const stream = Array.from({ length: count }, (_, at) => ask(pool.api, "classifier", at));
  await stream[2];
  await pages[1].close();
  (await Promise.all(stream)).forEach((answer, at) => near(answer, right[at]));
  near(await ask(pool.api, "classifier", 7), right[7]);
  const after = await service(pool.api);
  // The page may have asked again as well.
  assert.ok(after.answered - before.answered > count, `${before.answered} before, ${after.answered} now`);
  assert.equal(after.failed, 0);

  // With another tab there are three slices again.
  await lend(window, pool);
  await inSlices(pool.api);
  near(await ask(pool.api, "classifier", 9), right[9]);
});
