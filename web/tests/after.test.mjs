// What the other tests stand on: winding up ends everything, whatever fails on the way.

import assert from "node:assert/strict";
import { it } from "node:test";

import { after } from "./lib/after.mjs";

it("winding up goes backwards, through faults, and tells the first", async () => {
  const done = [];
  let hook;
  const t = { after: (given) => (hook = given) };
  after(t, () => done.push("folder"));
  after(t, () => assert.fail("the process would not end"));
  after(t, async () => done.push("browser"));
  await assert.rejects(() => hook(), /would not end/);
  assert.deepEqual(done, ["browser", "folder"]);
});
