/** Frames of a tab go by QUIC, and by its socket again when that is lost: the field is the same. */

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { after as afterAll, before, test } from "node:test";
import { connect } from "../dist/assets/sdk.js";
import { after } from "./lib/after.mjs";
import { launch } from "./lib/chromium.mjs";
import { startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { varint } from "./lib/postcard.mjs";
import { joinTab } from "./lib/tab.mjs";

/** Whole numbers, so that every kind of device gives the same bits. */
const SOURCE = `
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    next[id.y * params.width + id.x] = id.x * 31u + ((params.first_row + id.y) % params.height) * 17u;
}

@compute @workgroup_size(8, 8)
fn mix(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    let up = (max(id.y, 1u) - 1u) * params.width + id.x;
    let down = min(id.y + 1u, params.rows - 1u) * params.width + id.x;
    let here = id.y * params.width + id.x;
    next[here] = state[here] * 3u + state[up] * 5u + (state[down] >> 3u);
}
`;
const [WIDTH, HEIGHT, STEPS] = [256, 96, 400];
const QUIC_OFFER = 11;
const HASHES = 2;

let browser;

before(async () => {
  browser = await launch();
});

afterAll(() => browser?.close());

/** A pool of one tab and one native node that only know the relay; `front` stands before the coordinator for the tab. */
async function pool(t, front = (coordinator) => startFront(coordinator)) {
  const coordinator = await startCoordinator();
  after(t, () => coordinator.close());
  const native = await startNode(coordinator.joinLink, ["--no-direct"]);
  after(t, () => native.close());
  const before = await front(coordinator);
  after(t, () => before.close());
  const tab = await joinTab(browser, before, { lend: { name: "tab", whenHidden: "go on" } });
  after(t, () => tab.close());
  await tab.joined();
  const shoal = await connect(coordinator.url, coordinator.key);
  while ((await shoal.nodes()).length < 2) await new Promise((resolve) => setTimeout(resolve, 25));
  return { coordinator, shoal };
}

const simulate = (shoal, members, more = {}, run) =>
  shoal.sim({ source: SOURCE, width: WIDTH, height: HEIGHT, steps: STEPS, passes: "mix", members, ...more }, run);

async function relay({ url, key }) {
  const answer = await fetch(`${url}/api/v1/pool`, { headers: { authorization: `Bearer ${key}` } });
  return (await answer.json()).relay;
}

const bytes = (field) => Buffer.from(field.buffer, field.byteOffset, field.byteLength);

test("a tab and a native node talk by QUIC", async (t) => {
  const { coordinator, shoal } = await pool(t);
  const alone = await simulate(shoal, 1);
  const together = await simulate(shoal, 2);
  assert.ok(bytes(together).equals(bytes(alone)));
  const found = await relay(coordinator);
  assert.ok(found.quicOpened >= 2, JSON.stringify(found));
  assert.ok(found.quic.in > 0 && found.quic.out > 0, JSON.stringify(found));
});

test("a line that is cut in the middle brings a tab back to its socket", async (t) => {
  let line;
  const { coordinator, shoal } = await pool(t, async (coordinator) => {
    const port = Number(new URL(coordinator.url).port);
    line = await startLine(port);
    after(t, () => line.close());
    const [said, told] = [port, line.port].map((port) => Buffer.from([QUIC_OFFER, ...varint(port), HASHES]));
    const frames = (bytes) => {
      const at = bytes.indexOf(said);
      if (at >= 0) told.copy(bytes, at);
      return bytes;
    };
    return startFront(coordinator, { frames });
  });
  const alone = await simulate(shoal, 1);
  let cut;
  const onProgress = async ({ sim }) => {
    if (cut || !(sim?.crew?.keptStep > 0)) return;
    const seen = await relay(coordinator);
    if (cut || seen.quicOpened < 2 || line.passed === 0) return;
    cut = seen;
    line.cut();
  };
  const together = await simulate(shoal, 2, { steps: 10 * STEPS, keepEvery: 100 }, { onProgress });
  assert.ok(cut, "it never went by QUIC");
  const found = await relay(coordinator);
  assert.ok(found.socket.in > cut.socket.in, JSON.stringify([cut, found]));
  const whole = await simulate(shoal, 1, { steps: 10 * STEPS });
  assert.ok(bytes(together).equals(bytes(whole)));
  assert.notDeepEqual(bytes(whole), bytes(alone));
});

/** Passes datagrams between one browser and the coordinator until it is cut. Nobody is told of that. */
async function startLine(port) {
  const [near, far] = [createSocket("udp4"), createSocket("udp4")];
  await Promise.all([near, far].map((socket) => new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve))));
  let client;
  let isCut = false;
  const line = {
    port: near.address().port,
    passed: 0,
    cut: () => (isCut = true),
    close: () => [near, far].forEach((socket) => socket.close()),
  };
  near.on("message", (bytes, from) => {
    client = from;
    line.passed += bytes.length;
    if (!isCut) far.send(bytes, port, "127.0.0.1");
  });
  far.on("message", (bytes) => {
    if (!isCut) near.send(bytes, client.port, "127.0.0.1");
  });
  return line;
}
