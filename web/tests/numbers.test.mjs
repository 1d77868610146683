/** What may be given to a kernel, what becomes of it, and what is refused with which words. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./lib/typescript.mjs";

const { prepareAll, formed, itemShape } = await load("numbers/input.ts", "numbers/result.ts");

const array = (type, scalar, lanes, name = "points") => ({ name, type, scalar, lanes, stride: 4 * lanes });
const F32 = array("f32", "f32", 1);
const I32 = array("i32", "i32", 1);
const U32 = array("u32", "u32", 1);
const VEC2 = array("vec2<f32>", "f32", 2);
const VEC3 = array("vec3<f32>", "f32", 4);
const STAR = array("Star", "mixed", 3, "stars");

const prepare = (input, element) => prepareAll({ input }, { inputs: [element] })[0];
const sent = (input, element) => prepare(input, element).source;
const refused = (input, element, ...words) =>
  assert.throws(
    () => prepare(input, element),
    ({ name, message }) => name === "ShoalError" && words.every((word) => message.includes(word) || assert.fail(message)),
  );

test("a typed array of the kernel's type is sent as it is", () => {
  const values = Float32Array.of(1, 2);
  const { source, type, form } = prepare(values, F32);
  assert.equal(source, values);
  assert.deepEqual([type, form], ["f32", "flat"]);
  assert.equal(prepare(Float32Array.of(1, 2, 3, 4), VEC2).type, "f32");
});

test("a typed array of another type is refused with both types and what to do", () => {
  refused(new Float64Array(4), F32, "input is a Float64Array", `the kernel's "points" is array<f32>`, "Float32Array.from(values)");
  refused(new Uint32Array(4), F32, "a Uint32Array", "Float32Array.from(values)");
  refused(new Float32Array(4), I32, "a Float32Array", "array<i32>", "Int32Array.from(values)");
  refused(new Int32Array(4), U32, "an Int32Array", "array<u32>", "Uint32Array.from(values)");
  refused(new BigInt64Array(4), F32, "a BigInt64Array", "Float32Array.from(values, Number)");
  refused(new Float64Array(4), VEC2, "array<vec2<f32>>", "Float32Array.from(values)");
});

test("bytes are sent only where that is said", () => {
  for (const bytes of [new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), new Blob(["12345678"])]) {
    refused(bytes, F32, "pass a Float32Array, or { data, raw: true }");
    assert.deepEqual(prepare({ data: bytes, raw: true }, F32), { source: bytes, form: "flat" });
  }
  refused(new Uint8Array(8), F32, "a Uint8Array", "Float32Array.from(values)", "{ data, raw: true }");
  refused(Buffer.alloc(8), F32, "a Uint8Array");
  assert.equal(prepare({ data: new Float64Array(1), raw: true, whole: true }, F32).type, undefined);
  refused({ data: [1, 2], raw: true }, F32, "raw bytes must be an ArrayBuffer");
  refused(new Float32Array(3), STAR, "array<Star>", "mixes kinds of numbers", "raw: true");
  refused([1, 2, 3], STAR, "array<Star>");
  assert.ok(sent({ data: new ArrayBuffer(12), raw: true }, STAR));
  assert.deepEqual(sent({ blob: "ab" }, STAR), { blob: "ab" });
  assert.equal(prepare({ data: { blob: "ab" }, type: "Star" }, STAR).type, "Star");
});

test("lists of numbers become what the kernel reads", () => {
  assert.deepEqual(sent([1, 22, 3, 4], F32), Float32Array.of(1, 22, 3, 4));
  assert.deepEqual(sent([0.1, NaN, -Infinity, -0], F32), Float32Array.of(0.1, NaN, -Infinity, -0));
  assert.deepEqual(sent([-(2 ** 31), 2 ** 31 - 1], I32), Int32Array.of(-2147483648, 2147483647));
  assert.deepEqual(sent([0, 2 ** 32 - 1], U32), Uint32Array.of(0, 4294967295));
  const { source, form, shape } = prepare([[1, 2, 3], [4, 5, 6]], F32);
  assert.deepEqual([source, form, shape], [Float32Array.of(1, 2, 3, 4, 5, 6), "nested", [2, 3]]);
  assert.deepEqual(sent([1, 2, 3, 4], VEC2), Float32Array.of(1, 2, 3, 4));
});

test("what does not fit is refused with its place", () => {
  refused([1, 2.5], I32, "input[1] is 2.5, which is not a whole number", "array<i32>", "Math.round");
  refused([[1], [-1]], U32, "input[1][0] is -1, which does not fit u32 (0 to 4294967295)");
  refused([2 ** 31], I32, "input[0] is 2147483648, which does not fit i32");
  refused([NaN], I32, "input[0] is NaN");
  refused([Infinity], U32, "input[0] is Infinity");
  refused([1, 1e39], F32, "input[1] is 1e+39, which is too large for f32");
  refused([1, "2"], F32, `input[1] is the text "2", not a number: convert it with Number(value)`);
  refused([1n], F32, "input[0] is the BigInt 1n, not a number: convert it");
  refused([true], F32, "input[0] is true, not a number");
  refused([1, null], F32, "input[1] is null, not a number");
  refused([1, undefined], F32, "input[1] is undefined");
  refused([1, , 3], F32, "input[1] is a hole");
  refused([[1, 2], [3]], F32, "input is ragged: input[1] has 1 entry, others have 2 entries");
  refused([[1, 2], 3], F32, "input[1] is 3, but its neighbours are lists");
  refused([1, [2]], F32, "input[1] is a list, but its neighbours are numbers");
  refused([new Float32Array(2)], F32, "input[0] is a Float32Array, not a number");
  refused([], F32, "input is empty");
  refused([[], []], F32, "input is empty");
  refused(new Float32Array(0), F32, "input is empty");
  refused("1 2 3", F32, "input is a string", "pass a Float32Array or a list of numbers");
  refused(null, F32, "input is null, but");
  const endless = [];
  endless.push(endless);
  refused(endless, F32, "nested more than 32 levels deep");
});

test("vectors of three get their padding from lists and shapes, and a flat array is as in memory", () => {
  assert.deepEqual(sent([[1, 2, 3], [4, 5, 6]], VEC3), Float32Array.of(1, 2, 3, 0, 4, 5, 6, 0));
  const shaped = { data: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] };
  assert.deepEqual(sent(shaped, VEC3), Float32Array.of(1, 2, 3, 0, 4, 5, 6, 0));
  const memory = Float32Array.of(1, 2, 3, 0, 4, 5, 6, 0);
  assert.equal(sent(memory, VEC3), memory);
  refused(new Float32Array(6), VEC3, "6 numbers", "items of 4", "padding included", "shape: [n, 3]");
  refused([1, 2, 3], VEC3, "input is flat", "[[x, y, z], …]");
  refused([[1, 2, 3, 0]], VEC3, "rows of 4 do not make elements of 3");
  refused([[1, 2, 3], [4, 5, 6]], VEC2, "rows of 3 do not make elements of 2");
  refused(new Float32Array(3), VEC2, "3 numbers", "items of 2");
  refused({ data: new Float32Array(6), shape: [4, 2] }, F32, "6 numbers, which do not make the shape [4, 2]");
  refused({ data: [1, 2], shape: [2] }, F32, "its own shape");
});

test("as many inputs as the kernel reads", () => {
  const two = { inputs: [VEC2, array("f32", "f32", 1, "table")] };
  assert.throws(() => prepareAll({ input: new Float32Array(2) }, two), /reads 2 arrays \(points: array<vec2<f32>>, table: array<f32>\), but you passed 1/);
  const inputs = [Float32Array.of(1, 2), { data: new Float64Array(2), whole: true }];
  assert.throws(() => prepareAll({ inputs }, two), /inputs\[1\] is a Float64Array, but the kernel's "table"/);
});

test("a result has the form of the first input that is split", () => {
  const result = (input, element, output, flat, items, perItem = 1) =>
    formed(flat, [prepare(input, element)], output, items, perItem);
  const flat = Float32Array.of(1, 2, 3, 4, 5, 6);
  assert.equal(result(new Float32Array(6), F32, F32, flat, 6), flat);
  assert.equal(result([1, 2, 3, 4, 5, 6], F32, F32, flat, 6), flat);
  assert.deepEqual(result([[0, 0, 0], [0, 0, 0]], F32, F32, flat, 6), [[1, 2, 3], [4, 5, 6]]);
  assert.deepEqual(result([[0, 0], [0, 0], [0, 0]], VEC2, VEC2, flat, 3), [[1, 2], [3, 4], [5, 6]]);
  assert.deepEqual(result([[0], [0], [0]], F32, F32, flat, 3, 2), [[[1, 2]], [[3, 4]], [[5, 6]]]);
  const six = { data: new Float32Array(6), shape: [3, 2] };
  assert.deepEqual(result(six, F32, F32, flat, 6), { data: flat, shape: [3, 2] });
  const padded = Float32Array.of(1, 2, 3, 9, 4, 5, 6, 9);
  assert.deepEqual(result([[0, 0, 0], [0, 0, 0]], VEC3, VEC3, padded, 2), [[1, 2, 3], [4, 5, 6]]);
  assert.deepEqual(result([[0, 0, 0], [0, 0, 0]], VEC3, F32, Float32Array.of(7, 8), 2), [7, 8]);
  const whole = { ...prepare([[1], [2]], F32), whole: true };
  assert.equal(formed(flat, [whole, prepare(new Float32Array(6), F32)], F32, 6, 1), flat);
});

test("an item's own axes are not in the result's shape", () => {
  assert.deepEqual(itemShape([3, 4], 12), [3, 4]);
  assert.deepEqual(itemShape([3, 4, 2], 12), [3, 4]);
  assert.deepEqual(itemShape([3, 4, 2], 3), [3]);
  assert.equal(itemShape([24], 12), undefined);
});
