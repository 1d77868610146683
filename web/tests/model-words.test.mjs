/** Models in the SDK, without a browser: what is refused, what travels, and where a model runs next. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./lib/typescript.mjs";

const { checked, picturePort, pack, unpack, requestJson, readAnswer, choose, failed, measured, share, unknown } = await load(
  "models/check.ts",
  "models/tensors.ts",
  "models/choose.ts",
);

const IMAGES = { name: "images", datatype: "FP32", shape: [1, 3, 8, 8] };
const ROWS = { name: "rows", datatype: "INT64", shape: [-1, 3] };
const GRID = { name: "grid", datatype: "UINT8", shape: [-1, -1] };

test("inputs that do not fit are refused with what was expected", () => {
  const says = (ports, inputs, words, boxes) => assert.throws(() => checked(ports, inputs, boxes), { code: "bad_input", message: words });
  const floats = new Float32Array(192);
  says([IMAGES], {}, 'the input "images" is missing: expected float32[1x3x8x8]');
  says([IMAGES], { image: floats }, 'the model has no input "image", only images');
  says([IMAGES], { images: new Float64Array(192) }, 'the input "images" is of the type Float64Array: expected Float32Array for float32[1x3x8x8]');
  says([IMAGES], { images: [1, 2] }, 'the input "images" is of the type undefined: expected Float32Array for float32[1x3x8x8]');
  says([IMAGES], { images: new Float32Array(7) }, 'the input "images" has 7 numbers: expected 192 for float32[1x3x8x8]');
  says([IMAGES], { images: { data: floats, shape: [1, 8, 8, 3] } }, 'the input "images" has the shape [1, 8, 8, 3]: expected float32[1x3x8x8]');
  says([ROWS], { rows: new BigInt64Array(4) }, 'the input "rows" has 4 numbers: expected a multiple of 3 for int64[?x3]');
  says([ROWS], { rows: { data: new BigInt64Array(4), shape: [2, 3] } }, 'the input "rows" has 4 numbers: its shape [2, 3] takes 6');
  says([GRID], { grid: new Uint8Array(4) }, 'the input "grid" is uint8[?x?]: pass { data, shape }, because it has several open sides');
  const picture = { pixels: new Uint8Array(12), width: 2, height: 2 };
  says([ROWS], { rows: picture }, 'the input "rows" takes no picture: it is int64[?x3]');
  says([IMAGES], { images: { ...picture, width: 3 } }, 'the picture for "images" is 3x2 with 12 bytes: expected 3 for each pixel');
  says([IMAGES], { images: floats }, "boxes are found in one picture: there are 0", {});
  says([IMAGES], { images: picture }, "score is 2: expected a number from 0 to 1", { score: 2 });
});

test("numbers without a shape get the model's, and pictures say how they are fitted", () => {
  const { tensors } = checked([ROWS], { rows: new BigInt64Array(6) });
  assert.deepEqual(tensors[0].shape, [2, 3]);
  const asked = checked([IMAGES], { images: { pixels: new Uint8Array(18), width: 3, height: 2 } }, { score: 0.5 });
  assert.deepEqual(asked.tensors[0].shape, [1, 2, 3, 3]);
  assert.deepEqual(asked.sight.boxes, { score: 0.5, overlap: 0.45 });
  const { inputs, parameters } = JSON.parse(requestJson(asked));
  assert.deepEqual(inputs[0].parameters, { binary_data_size: 18, pixels: "letterbox", normalize: "none" });
  assert.deepEqual(parameters, { binary_data_output: true, boxes: true, score: 0.5, overlap: 0.45 });
  assert.equal(picturePort([ROWS, IMAGES])?.name, "images");
  assert.equal(picturePort([IMAGES, { ...IMAGES, name: "second" }]), undefined);
});

test("what is packed is unpacked, whatever its type", () => {
  const tensors = [
    { name: "größe", datatype: "FP32", shape: [2, 1], bytes: new Uint8Array(Float32Array.of(1.5, -2).buffer) },
    { name: "n", datatype: "INT64", shape: [300, 0], bytes: new Uint8Array(0) },
    { name: "b", datatype: "BOOL", shape: [3], bytes: Uint8Array.of(1, 0, 1) },
  ];
  const outputs = unpack(pack({ tensors, sight: { pictures: [] } }));
  assert.deepEqual([...outputs["größe"].data], [1.5, -2]);
  assert.deepEqual(outputs.n, { data: new BigInt64Array(0), shape: [300, 0] });
  assert.deepEqual(outputs.b, { data: Uint8Array.of(1, 0, 1), shape: [3] });
});

test("an answer that is cut off is not taken for whole", () => {
  const json = JSON.stringify({ outputs: [{ name: "y", datatype: "FP32", shape: [2], parameters: { binary_data_size: 8 } }] });
  const body = (bytes) => new Uint8Array(Buffer.concat([Buffer.from(json), Buffer.from(bytes)])).buffer;
  assert.deepEqual([...readAnswer(body(Float32Array.of(3, 4).buffer), json.length).y.data], [3, 4]);
  assert.throws(() => readAnswer(body([1, 2, 3]), json.length), { code: "bad_answer" });
  assert.throws(() => readAnswer(body([]), 0), { code: "bad_answer" });
});

const known = (local, remote, at = 0) => ({ local: { ...unknown(), ms: local, at }, remote: { ...unknown(), ms: remote, at } });

test("a model runs on the pool while it is loaded, then each place is measured, then the faster is kept to", () => {
  const place = (...args) => choose(...args).place;
  assert.deepEqual(choose(0, known(), "loading"), { place: "remote", why: "this page is still loading the model" });
  assert.equal(place(0, known(), "ready"), "remote");
  assert.equal(place(0, known(undefined, 50), "ready"), "local");
  assert.deepEqual(choose(0, known(100, 50), "ready"), { place: "remote", why: "faster: 100 ms on this device, 50 ms on the pool" });
  assert.equal(place(0, known(50, 100), "ready", "remote"), "local", "it moves");
  assert.equal(place(0, known(48, 50), "ready", "remote"), "remote", "not for a little");
  assert.equal(place(30_000, known(50, 100), "ready", "local"), "remote", "the other is measured again");
  assert.equal(place(30_000, known(50, 1000), "ready", "local"), "local", "unless that is hopeless");
});

test("a place that failed is left alone for a while, longer each time, and for good if it can never be otherwise", () => {
  const places = known(100, 50);
  places.remote = failed(places.remote, 0, "nobody there", false);
  assert.deepEqual(choose(1_000, places, "ready", "remote"), { place: "local", why: "the pool does not answer: nobody there" });
  assert.equal(choose(3_000, places, "ready", "remote").place, "remote");
  places.remote = failed(places.remote, 3_000, "nobody there", false);
  assert.equal(choose(6_000, places, "ready", "local").place, "local");
  places.remote = measured(places.remote, 8_000, 50);
  assert.equal(places.remote.fails, 0);
  places.local = failed(places.local, 0, "no memory", true);
  assert.deepEqual(choose(1e9, places, "none"), { place: "remote", why: "no memory" });
});

test("of a budget, something is left for the other place", () => {
  assert.equal(share(1_000, undefined, false), 1_000);
  assert.equal(share(1_000, undefined, true), 500);
  assert.equal(Math.round(share(1_000, 170, true)), 800);
  assert.equal(share(1_000, 5_000, true), 250);
  assert.equal(share(Infinity, 170, true), Infinity);
});
