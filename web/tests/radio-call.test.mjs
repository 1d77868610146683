/** A Worker's call when its channel was moved there: what comes before it is open is neither lost nor answered too early. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { after } from "./lib/after.mjs";
import { load } from "./lib/typescript.mjs";

/** Ports that pass things as they are, because a stand-in for a channel cannot be moved. */
class Ports {
  port1 = { onmessage: null, postMessage() {}, close() {} };
  port2 = { postMessage: (data) => this.port1.onmessage?.({ data }) };
}

/** As Chromium has it: nothing can be said before it is open. */
class Channel {
  readyState = "connecting";
  bufferedAmount = 0;
  said = [];

  send(bytes) {
    if (this.readyState !== "open") throw new Error("not open");
    this.said.push(bytes.byteLength);
  }

  close() {}

  open() {
    this.readyState = "open";
    this.onopen?.();
  }
}

async function call(t, on) {
  const { MessageChannel } = globalThis;
  globalThis.MessageChannel = Ports;
  after(t, () => (globalThis.MessageChannel = MessageChannel));
  const { Call } = await load("workers/radio.ts");
  let page;
  const what = { do: "listen", ice: [], takesChannels: true };
  const made = new Call(({ port }) => (page = port), what, { words() {}, up() {}, down() {}, frame() {}, ...on });
  const channel = new Channel();
  page.postMessage({ is: "channel", channel });
  return { made, channel };
}

test("what comes before the channel is open is heard once it is, and can be answered", async (t) => {
  const seen = [];
  const say = (what, size) => seen.push([what, made.send(new Uint8Array(size))]);
  const { made, channel } = await call(t, {
    up: () => say("up", 81),
    frame: (bytes) => say(`frame of ${bytes.length}`, 89),
  });
  channel.onmessage({ data: new ArrayBuffer(5) });
  channel.onmessage({ data: new ArrayBuffer(6) });
  assert.deepEqual(seen, [], "nobody could answer yet");
  channel.open();
  channel.onmessage({ data: new ArrayBuffer(7) });
  assert.deepEqual(seen, [["up", true], ["frame of 5", true], ["frame of 6", true], ["frame of 7", true]]);
  assert.deepEqual(channel.said, [81, 89, 89, 89]);
});

test("a channel whose opening nobody tells is up with the first frame that comes then", async (t) => {
  const seen = [];
  const { channel } = await call(t, { up: () => seen.push("up"), frame: () => seen.push("frame") });
  channel.readyState = "open";
  channel.onmessage({ data: new ArrayBuffer(5) });
  assert.deepEqual(seen, ["up", "frame"]);
});

test("who never opens a channel cannot fill this node's memory", async (t) => {
  const seen = [];
  const { channel } = await call(t, { frame: () => seen.push("frame") });
  for (let frame = 0; frame < 10_000; frame++) channel.onmessage({ data: new ArrayBuffer(5) });
  channel.open();
  assert.equal(seen.length, 64);
});

test("what came early for a call that is over is not heard", async (t) => {
  const seen = [];
  const { made, channel } = await call(t, { up: () => made.hang(), frame: () => seen.push("frame") });
  channel.onmessage({ data: new ArrayBuffer(5) });
  channel.open();
  assert.deepEqual(seen, []);
});
