/** The app's parts that need no browser. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { StringStream } from "@codemirror/language";

import { load } from "./load.mjs";

const kernel = (name) =>
  readFile(new URL(`../../../examples/kernels/${name}.wgsl`, import.meta.url), "utf8");

test("a changed signal reruns its readers once, parents before children", async () => {
  const { signal, effect, root } = await load("view/reactive.ts");
  const [a, b] = [signal(1), signal(10)];
  const seen = [];
  const [, drop] = root(() =>
    effect(() => {
      seen.push(`parent ${a()}`);
      effect(() => seen.push(`child ${a() + b()}`));
    }),
  );
  a.set(2);
  b.set(20);
  await null;
  assert.deepEqual(seen, ["parent 1", "child 11", "parent 2", "child 22"]);
  drop();
  a.set(3);
  await null;
  assert.equal(seen.length, 4);
});

test("a simulation's progress is its steps, and its devices are its crew", async () => {
  const { stateWord, detail, doneOf } = await load("core/progress.ts");
  const job = (more) => ({
    state: "running", kind: "sim", items: 256, itemsDone: 0, ableNodes: 2, shares: [], rate: 0, etaSeconds: 3, submitted: 0,
    started: 0, ended: null, error: null, sim: null, ...more,
  });
  const sim = { step: 75, steps: 300, crew: { members: [{}, {}] } };
  assert.equal(stateWord(job({ sim })), "25 %");
  assert.equal(detail(job({ sim }), 1000), "step 75 of 300, 3.0 s left, 2 devices");
  assert.equal(detail(job({ sim, state: "done", ended: 2000 }), 9000), "300 steps in 2.0 s");
  assert.equal(doneOf(job({ sim, state: "done" })), 1);
  const farm = job({ kind: "map", itemsDone: 64, rate: 8, shares: [{}] });
  assert.deepEqual([stateWord(farm), detail(farm, 1000)], ["25 %", "8/s, 3.0 s left, 1 device"]);
});

test("names of boxes stand beside each other, inside of the picture", async () => {
  const { labelAt } = await load("core/labels.ts");
  const box = (left, top, right, bottom) => ({ left, top, right, bottom });
  const all = [400, 300];
  const at = (box, taken) => {
    const { left, top } = labelAt(box, [80, 20], all, taken);
    return [left, top];
  };
  const one = box(50, 100, 150, 200);
  assert.deepEqual(at(one, []), [50, 80]);
  const above = labelAt(one, [80, 20], all, []);
  // Its neighbour's name would begin in the middle of this one.
  assert.deepEqual(at(box(100, 90, 180, 200), [above]), [100, 200]);
  assert.deepEqual(at(box(100, 95, 180, 295), [above]), [100, 275]);
  assert.deepEqual(at(box(130, 90, 210, 200), [above]), [130, 70]);
  assert.deepEqual(at(box(-5, 10, 395, 299), []), [0, 10], "no room above");
  assert.deepEqual(at(box(380, 100, 399, 200), []), [320, 80], "no room at the right");
  const everywhere = [box(0, 0, ...all)];
  assert.deepEqual(at(one, everywhere), [50, 80]);
});

test("a device's card says what it keeps ready", async () => {
  const { keptWords } = await load("core/kept.ts");
  const services = [
    { name: "yolov8n", replicas: [{ node: 1, ready: true }, { node: 2, ready: false }] },
    { name: "large", replicas: [], crew: { stages: [{ node: 3, ready: true }, { node: 1, ready: false }] } },
  ];
  assert.equal(keptWords(services, 1), "yolov8n, large (slice 2 of 2, loading)");
  assert.equal(keptWords(services, 2), "yolov8n (loading)");
  assert.equal(keptWords(services, 3), "large (slice 1 of 2)");
  assert.equal(keptWords(services, 4), "");
});

test("a memo stops changes that change nothing", async () => {
  const { signal, effect, memo, root } = await load("view/reactive.ts");
  const n = signal(1);
  let runs = 0;
  root(() => {
    const even = memo(() => n() % 2 === 0);
    effect(() => {
      even();
      runs += 1;
    });
  });
  n.set(3);
  await null;
  assert.equal(runs, 1);
  n.set(4);
  await null;
  assert.equal(runs, 2);
});

test("numbers read as people write them", async () => {
  const { count, bytes, duration, percent, ago } = await load("core/format.ts");
  assert.equal(count(1234), "1,234");
  assert.equal(count(67_108_864), "67.1 M");
  assert.equal(count(999_900), "1.00 M");
  assert.equal(bytes(256 * 1024), "256 KiB");
  assert.equal(duration(0.42), "420 ms");
  assert.equal(duration(185), "3 min 5 s");
  assert.equal(percent(239, 240), "99.5 %");
  assert.equal(percent(240, 240), "100 %");
  assert.equal(ago(0, 185_000), "3 min ago");
});

test("donors and owners are told what a kind says of itself, and of an unknown one its name", async () => {
  const { kindWords } = await load("join/words.ts");
  const { items } = await load("core/format.ts");
  assert.equal(kindWords("exec"), "a program in a sandbox");
  assert.equal(kindWords("toString"), "toString");
  assert.deepEqual([items(1, "exec"), items(2, "sim"), items(2, "map"), items(2, "dance")], ["1 run", "2 rows", "2 items", "2 items"]);
});

test("a .npy file that no kernel can take says why", async () => {
  const { kernelNumbers } = await load("core/kernel-numbers.ts");
  const { npyHeader } = await load("../../sdk/src/npy.ts");
  const file = (type, data) => new Blob([npyHeader(type, [data.length]), data]).arrayBuffer();
  assert.deepEqual(kernelNumbers(await file("i32", Int32Array.of(1, -2))), Int32Array.of(1, -2));
  assert.throws(() => kernelNumbers(new ArrayBuffer(64)), /not a \.npy/);
  const wide = await file("f64", Float64Array.of(1));
  assert.throws(() => kernelNumbers(wide), /f64.*float32/);
});

test("every word of a kernel has its kind, and brackets say how far a line is indented", async () => {
  const { wgsl } = await load("editor/wgsl.ts");
  const state = wgsl.startState(4);
  const kinds = (line) => {
    const stream = new StringStream(line, 4, 4);
    const found = [];
    while (!stream.eol()) {
      const kind = wgsl.token(stream, state);
      if (kind) found.push(`${stream.current()} ${kind}`);
      stream.start = stream.pos;
    }
    return found.join("; ");
  };
  const depth = (after) => wgsl.indent(state, after, { unit: 4 });
  assert.equal(
    kinds("@group(0) var<storage, read> read: array<vec4f, 0x1Fu>; // all"),
    "@group meta; 0 number; var keyword; storage modifier; read modifier; array typeName; vec4f typeName; 0x1Fu number; // all comment",
  );
  assert.equal(kinds("fn main(x: f32) { let y = sin(x * 1.5e-3f) == true;"),
    "fn keyword; main macroName; f32 typeName; let keyword; sin macroName; 1.5e-3f number; true number");
  assert.deepEqual([depth("return"), depth("}")], [4, 0]);
  assert.equal(kinds("/* one /* two */ still"), "/* one /* two */ still comment");
  assert.equal(kinds("*/ if"), "*/ comment; if keyword");
  assert.equal(kinds("}"), "");
  assert.equal(depth("fn"), 0);
});

test("the fields of the playground come from the kernel", async () => {
  const { kernelShape } = await load("core/wgsl.ts");
  const saxpy = kernelShape(await kernel("saxpy"));
  assert.deepEqual(
    saxpy.inputs.map((input) => input.name),
    ["x", "y"],
  );
  assert.deepEqual(saxpy.params, [{ name: "a", scalar: "f32", lanes: 1 }]);
  assert.equal(saxpy.picture, false);
  const julia = kernelShape(await kernel("julia"));
  assert.deepEqual(julia.params, [{ name: "c", scalar: "f32", lanes: 2 }]);
  assert.equal(julia.output.lanes, 4);
  assert.equal(julia.picture, true);
  const commented = kernelShape("// @group(0) @binding(0) var<storage, read> gone: array<f32>;");
  assert.deepEqual(commented.inputs, []);
});

test("parameters that are not numbers are refused by name", async () => {
  const { paramValues } = await load("pages/playground/fill.ts");
  const params = [{ name: "c", scalar: "f32", lanes: 2 }];
  assert.deepEqual(paramValues(params, { c: "-0.79, 0.15" }), { c: [-0.79, 0.15] });
  assert.throws(() => paramValues(params, { c: "1" }), /c takes 2 numbers/);
  assert.throws(() => paramValues(params, { c: "a, b" }), /c is "a, b"/);
});

test("rates come from growing counters, also after a pause", async () => {
  const { series } = await load("core/series.ts");
  const { samples, push } = series();
  for (let second = 0; second <= 4; second += 1) push(second * 1000, new Map([[7, second * 50]]));
  assert.equal(samples().at(-1).rates.get(7), 50);
  push(60_000, new Map([[7, 10_000]]));
  push(61_000, new Map([[7, 10_080]]));
  assert.equal(samples().at(-1).rates.get(7), 80);
});

test("the ledger tells what ran, for whom and how fast", async () => {
  const { Ledger } = await load("join/ledger.ts");
  const ledger = new Ledger();
  const unit = (attempt) => ({
    attempt,
    job: 3,
    jobName: "wave",
    owner: "ines",
    kind: "map",
    start: 0,
    len: 100,
    lane: "gpu",
    since: 1000,
  });
  ledger.record({ type: "started", unit: unit(1) }, 1000);
  ledger.record({ type: "started", unit: unit(2) }, 1000);
  ledger.record({ type: "finished", unit: unit(1) }, 3000);
  const [active] = ledger.active(3000);
  assert.equal(active.entry.name, "wave");
  assert.equal(active.running, 1);
  assert.equal(active.rate, 50);
  ledger.record({ type: "failed", unit: unit(2), message: "out of memory" }, 3500);
  assert.deepEqual(ledger.active(9000), []);
  const [entry] = ledger.history();
  assert.deepEqual([entry.units, entry.failed, entry.problem], [1, 1, "out of memory"]);
});

test("code that is not what was signed is in the history, though none of it ran", async () => {
  const { Ledger } = await load("join/ledger.ts");
  const ledger = new Ledger();
  const job = { job: 4, jobName: "odd", owner: "Eve", kind: "map", signer: "e".repeat(64), signedHere: false };
  ledger.refuse(job, "it is not what the key signed", 1_000);
  const [entry] = ledger.history();
  assert.deepEqual([entry.name, entry.signer, entry.units, entry.failed], ["odd", job.signer, 0, 0]);
  assert.match(entry.problem, /^Refused: /);
});

const KEYS = ["a", "b", "c"].map((digit) => digit.repeat(64));

test("a donor's choice by key is kept, shown and undone", async () => {
  const { decide, signers, readChosen, EVERYBODY } = await load("join/rules.ts");
  const [ada, bob, eve] = KEYS;
  const ran = (signer, name, owner, signedHere = false) => ({ signer, name, owner, signedHere, job: 7 });
  const history = [ran(ada, "waves", "Ada"), ran(bob, "", "", true), ran(ada, "waves", "Ada"), { job: 1, name: "noop" }];
  const verdicts = (chosen) => Object.fromEntries(signers(chosen, history).map(({ key, verdict }) => [key[0], verdict]));
  assert.deepEqual(verdicts(EVERYBODY), { a: "runs", b: "runs" });
  const [first, second] = signers(EVERYBODY, history);
  assert.deepEqual([first.note, second.note, second.isCoordinator], ["waves for Ada", "job 7", true]);

  const without = decide(EVERYBODY, ada, "never", "waves for Ada");
  assert.deepEqual([without.never, without.only], [[ada], []]);
  assert.deepEqual(verdicts(without), { a: "never", b: "runs" });
  assert.equal(signers(without, [])[0].note, "waves for Ada", "also when the history is gone");

  const limited = decide(decide(without, eve, "only", ""), ada, "only", "");
  assert.deepEqual(verdicts(limited), { a: "only", b: "left out", c: "only" });
  const free = decide(decide(limited, ada, "free", ""), eve, "free", "");
  assert.deepEqual(free, EVERYBODY);

  assert.deepEqual(readChosen(JSON.parse(JSON.stringify(limited))), limited);
  assert.deepEqual(readChosen({ only: [7, "short", ada], never: "no" }), { ...EVERYBODY, only: [ada] });
  assert.deepEqual(readChosen(null), EVERYBODY);
});

test("how answers are checked and devices are doing is said in words", async () => {
  const words = await load("core/checking.ts");
  assert.match(words.verifyWords("none"), /believes every answer/);
  assert.match(words.verifyWords("spot:0.25"), /computes 25 % of the units/);
  assert.match(words.verifyWords("quorum:3"), /3 devices of different owners must/);
  assert.match(words.verifyWords("adaptive"), /new device/);

  const job = { verify: "adaptive", unitsChecked: 0, unitsOwn: 11, unitsUnchecked: 0 };
  assert.deepEqual(words.checkedWords(job), [[11, "computed by your own devices, not checked"]]);
  assert.deepEqual(words.checkedWords({ ...job, unitsChecked: 4, unitsUnchecked: 2 }), [
    [4, "checked by another device"],
    [11, "computed by your own devices, not checked"],
    [2, "not checked"],
  ]);
  const agreed = { verify: "quorum:3", unitsChecked: 4, unitsOwn: 0, unitsUnchecked: 0 };
  assert.deepEqual(words.checkedWords(agreed), [[4, "agreed by 3 devices"]]);

  const lane = (streak, wrong, barred = false) => ({ streak, wrong, barred, veteran: streak >= 10 });
  const node = (gpu, cpu, trusted = false) => ({ trusted, trust: { gpu, cpu } });
  assert.equal(words.trustWords(node(lane(0, 0), lane(0, 0))), "new: every answer is checked");
  assert.equal(words.trustWords(node(lane(0, 0), lane(0, 0), true)), "your own device: not checked");
  assert.equal(words.trustWords(node(lane(12, 0), lane(0, 0))), "12 right in a row");
  assert.equal(
    words.trustWords(node(lane(0, 4, true), lane(3, 1))),
    "GPU barred after 4 wrong answers; programs 3 right in a row, 1 wrong before",
  );
  assert.ok(words.isBarred(node(lane(0, 4, true), lane(3, 1))));

  const fine = { visible: true, batteryPercent: 80, charging: true, metered: false };
  assert.equal(words.conditionWords({ condition: fine, pacePercent: 100 }), "");
  assert.equal(words.conditionWords({ condition: fine, pacePercent: 1 }), "", "uneven items are no news");
  const poor = { visible: false, batteryPercent: 20, charging: false, metered: true };
  assert.equal(
    words.conditionWords({ condition: poor, pacePercent: 37 }),
    "tab hidden, battery 20 %, metered connection, slowed to 37 %",
  );
  assert.deepEqual([0.4, 23.4, null].map(words.roundTripWords), ["under 1 ms", "23 ms", "not measured yet"]);
});

test("half of the device's memory is lent unless the donor says otherwise", async () => {
  const { memoryOf, memoryWords, STEP } = await load("join/memory.ts");
  const GIB = 2 ** 30;
  const laptop = memoryOf(8);
  assert.deepEqual([laptop.usual, laptop.most], [4 * GIB, 8 * GIB]);
  assert.equal(memoryWords(laptop.usual, laptop), "at most 4 GiB of 8 GiB");
  assert.equal(memoryWords(STEP, laptop), "at most 256 MiB of 8 GiB");
  const silent = memoryOf(undefined);
  assert.equal(silent.usual, GIB);
  assert.equal(memoryWords(silent.usual, silent), "at most 1 GiB");
  const tiny = memoryOf(0.25);
  assert.ok(tiny.usual <= tiny.most && tiny.most >= STEP);
});

test("who holds which layers of a model: all of them, or some together", async () => {
  const { layersWords, stagesOf, wholeOf } = await load("pages/chat/holders.ts");
  const { millis, wayOf } = await load("pages/chat/way.ts");
  const model = { layers: 30 };
  const replicas = [{ node: 4, name: "desk", ready: true, running: 0 }];
  const stage = (node, firstPart, parts, ready, travelMs) => ({ node, name: `tab ${node}`, firstPart, parts, ready, computeMs: node, travelMs });
  const crew = { stages: [stage(7, 0, 8, true, 0.5), stage(8, 8, 15, true, 2), stage(9, 23, 1, false, null)] };
  const told = (holders) => holders.map((one) => `${one.name} ${layersWords(one)}`);
  assert.deepEqual(told(wholeOf(model, { replicas, crew: null })), ["desk holds layers 1 to 30"]);
  const expected = ["tab 7 holds layers 1 to 10", "tab 8 holds layers 11 to 28", "tab 9 is loading layers 29 to 30"];
  assert.deepEqual(told(stagesOf(model, { replicas: [], crew })), expected);
  assert.deepEqual([wholeOf(model), stagesOf(model), wayOf(model), wayOf(null, { replicas, crew })], [[], [], null, null]);
  const sideBySide = { sideBySide: true, stages: [stage(7, 0, 24, true), stage(8, 24, 12, false)] };
  assert.deepEqual(told(stagesOf(model, { crew: sideBySide })), ["tab 7 holds 67 % of layers 1 to 30", "tab 8 is loading 33 % of layers 1 to 30"]);
  assert.equal(wayOf(model, { crew: sideBySide }).computeMs, 8);
  const { steps, computeMs, travelMs } = wayOf(model, { replicas: [], crew });
  assert.deepEqual([told(steps), computeMs, travelMs], [expected, 24, 2.5]);
  assert.deepEqual(steps.map(({ last }) => last), [false, false, true]);
  crew.stages[0].travelMs = null;
  assert.deepEqual([wayOf(model, { crew }).computeMs, wayOf(model, { crew }).travelMs], [24, null]);
  assert.deepEqual([0.44, 9.96, 12.4, null, undefined].map(millis), ["0.4 ms", "10 ms", "12 ms", "–", "–"]);
});

test("how fast an answer comes is told when enough of it is there", async () => {
  const { openPace } = await load("pages/chat/talk.ts");
  const pace = openPace();
  const told = [0, 20, 40, 60, 80, 100, 120, 140, 160].map((at) => pace(1000 + at, at === 0 ? 99 : 4));
  assert.deepEqual(told, ["", "", "", "", "", "", "", "about 200 characters/s", "about 200 characters/s"]);
  const still = openPace();
  for (let part = 0; part < 20; part += 1) assert.equal(still(5, 3), "");
});

test("what an answer took is told as the device measured it", async () => {
  const { told } = await load("pages/chat/talk.ts");
  const usage = { promptTokens: 31, cachedTokens: 0, promptMs: 84.2, answerTokens: 53, answerMs: 1301, answerRate: 40.74 };
  assert.equal(told(usage), "53 tokens at 40.7 tokens/s · prompt of 31 in 84 ms · answer in 1.3 s");
  const again = { ...usage, cachedTokens: 20 };
  assert.equal(told(again), "53 tokens at 40.7 tokens/s · prompt of 31, 20 of them read before, in 84 ms · answer in 1.3 s");
  assert.equal(told({ promptTokens: 31, answerTokens: 5, cachedTokens: 0 }), "5 tokens");
});
