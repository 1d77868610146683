/** Bands of a simulation in a tab's GPU Worker: however a grid is cut, the bits are the same. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { encodeWork } from "./lib/postcard.mjs";
import { cut, openSims } from "./lib/sims.mjs";

const SOURCE = readFileSync(new URL("../../examples/kernels/reaction-diffusion.wgsl", import.meta.url), "utf8");
const [WIDTH, HEIGHT, STEPS] = [96, 240, 6];

let sims;
/** The field of one band alone. */
let alone;

before(async () => {
  sims = await openSims();
  alone = await sims.run(work(), { bands: cut(HEIGHT, 1), steps: STEPS });
});
after(() => sims?.close());

/** As the coordinator's intake makes it of the file. */
function work() {
  const pass = (entry, times = 1) => ({ entry, workgroup: [8, 8, 1], times });
  const params = Buffer.alloc(48);
  params.writeFloatLE(0.037, 40);
  params.writeFloatLE(0.06, 44);
  const sim = {
    source: SOURCE,
    width: WIDTH,
    height: HEIGHT,
    steps: STEPS,
    halo: 8,
    passes: [pass("react", 8)],
    init: pass("init"),
    show: pass("show"),
    first: null,
    members: 0,
    keep_every: null,
    speculate: false,
    cell_bytes: 8,
    lanes: 2,
    scalar: "f32",
    slots: { params: 0, state: 1, next: 2, picture: 3 },
    params: [...params],
    fields: [
      ["Width", 0],
      ["Height", 4],
      ["FirstRow", 8],
      ["Rows", 12],
      ["Poke", 16],
      ["Brush", 32],
    ],
  };
  return { work: encodeWork({ Sim: sim }), width: WIDTH, height: HEIGHT };
}

test("a field of its own size, and a step that takes time", () => {
  assert.equal(alone.field.length, WIDTH * HEIGHT * 8);
  assert.ok(alone.field.some((byte) => byte !== 0));
  assert.ok(alone.audition.cells > 0 && alone.audition.took > 0, JSON.stringify(alone.audition));
});

for (const count of [2, 3, 4]) {
  test(`${count} bands give the same bits as one`, async () => {
    const { field } = await sims.run(work(), { bands: cut(HEIGHT, count), steps: STEPS });
    assert.ok(field.equals(alone.field));
  });
}

test("a step taken back leaves nothing behind", async () => {
  const { field } = await sims.run(work(), { bands: cut(HEIGHT, 2), steps: STEPS, backAt: 3 });
  assert.ok(field.equals(alone.field));
});

test("a poke is the same wherever the grid is cut, and changes the field", async () => {
  const pokes = [{ step: 1, at: [40, 60], by: [4, 2], radius: 9, strength: 1 }];
  const [one, three] = [
    await sims.run(work(), { bands: cut(HEIGHT, 1), steps: STEPS, pokes }),
    await sims.run(work(), { bands: cut(HEIGHT, 3), steps: STEPS, pokes }),
  ];
  assert.ok(!one.field.equals(alone.field));
  assert.ok(three.field.equals(one.field));
});

test("others go on from a checkpoint, cut in another way", async () => {
  const half = await sims.run(work(), { bands: cut(HEIGHT, 3), steps: 3, keep: true });
  const kept = half.kept.map((blob, at) => ({ ...cut(HEIGHT, 3)[at], ...blob }));
  const { field } = await sims.run(work(), { bands: cut(HEIGHT, 2), steps: STEPS, from: { step: 3, kept } });
  assert.ok(field.equals(alone.field));
});

test("pictures of all bands are those of the whole", async () => {
  const shown = async (count) => {
    sims.views.length = 0;
    await sims.run(work(), { bands: cut(HEIGHT, count), steps: 2, show: true });
    const byRow = sims.views.toSorted((a, b) => a.query.firstRow - b.query.firstRow);
    assert.deepEqual(byRow.map(({ query }) => [Number(query.firstRow), Number(query.rows)]), cut(HEIGHT, count).map(({ start, len }) => [start, len]));
    assert.ok(byRow.every(({ query }) => query.step === "2" && query.stride === "1"));
    return Buffer.concat(byRow.map(({ body }) => body));
  };
  const whole = await shown(1);
  assert.equal(whole.length, WIDTH * HEIGHT * 4);
  assert.ok((await shown(3)).equals(whole));
});
