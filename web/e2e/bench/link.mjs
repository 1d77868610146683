// Measures `bench link`: there and back, and megabytes a second, between tabs and native nodes, directly and through the relay,
// beside a data channel between two pages written by hand; each in turn, so that a busy moment strikes all alike.
//
//   node link.mjs URL TOKEN ROUNDS
//
// Prints one JSON object: for each way the milliseconds of a usual trip of 64 bytes and the megabytes a second, of each round, and how often
// a direct link fell back to the relay meanwhile.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";

import { until } from "../lib/until.mjs";
import { bareChannel } from "./bare-channel.mjs";
import { late } from "./late.mjs";
import { flow, join, pages, trips } from "./mesh-page.mjs";
import { talker } from "./talker.mjs";

const [url, token, rounds] = process.argv.slice(2);
const TRIPS = { count: 50, size: 64 };
/** At most so much under way as the page by hand lets wait. */
const FLOW = { bytes: 16 << 20, message: 1 << 20, ahead: 4 };
/** Milliseconds each way, of which half on each node's connection. */
const DELAYS = [20, 50];
const MOST_FALLS = 20;

const folder = mkdtempSync(path(tmpdir(), "shoal-link-"));
const ends = [];
const found = {};
try {
  const ways = { "tab to tab by hand": await bare() };
  for (const isDirect of [true, false]) {
    const way = isDirect ? "directly" : "by relay";
    ways[`tab to tab ${way}`] = await tabs({ isDirect });
    const [out, back] = await tabAndNative({ isDirect });
    ways[`tab to native ${way}`] = out;
    ways[`native to tab ${way}`] = back;
    ways[`native to native ${way}`] = await natives({ isDirect });
  }
  for (const delay of DELAYS) {
    const through = await late(url, delay / 2);
    ends.push(through.close);
    ways[`tab to tab by relay, ${delay} ms away`] = await tabs({ isDirect: false, url: through.url });
    ways[`native to native by relay, ${delay} ms away`] = await natives({ isDirect: false, url: through.url });
  }
  for (const way of Object.keys(ways)) found[way] = { trip: [], perSecond: [], fell: 0 };
  for (let round = 0; round < Number(rounds); round++) {
    for (const [way, ends] of Object.entries(ways)) {
      await measure(way, ends);
      const { trip, perSecond } = found[way];
      console.error(`round ${round + 1}: ${way}: ${trip.at(-1).toFixed(2)} ms, ${perSecond.at(-1).toFixed(1)} MB/s`);
    }
  }
} finally {
  for (const end of ends.reverse()) await end();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
console.log(JSON.stringify(found));

/** What went another way than meant does not count, and is counted. */
async function measure(way, { trips, flow, via }) {
  const meant = way.includes("relay") ? "relay" : "direct";
  for (;;) {
    await until(`a link of ${way}`, async () => (await via()) === meant, 120);
    const times = (await trips(TRIPS)).sort((a, b) => a - b);
    const seconds = await flow(FLOW);
    if ((await via()) === meant) {
      found[way].trip.push(times[times.length >> 1]);
      found[way].perSecond.push(FLOW.bytes / 1e6 / seconds);
      return;
    }
    found[way].fell += 1;
    if (found[way].fell > MOST_FALLS) throw new Error(`${way}: the link falls back to the relay again and again`);
  }
}

async function bare() {
  const { pages: both, close } = await pages(2);
  ends.push(close);
  return bareChannel(both);
}

async function page(options) {
  const { pages: [page], close } = await pages(1);
  ends.push(close);
  return { page, id: await page.evaluate(join, { url, token, ...options }) };
}

function native(options) {
  const { isDirect, url: at = url } = options;
  const words = isDirect ? [] : ["--no-direct"];
  const native = talker(`${at}/join#${token}`, path(folder, String(ends.length)), words);
  ends.push(native.close);
  return native;
}

function ofPage(page) {
  return {
    trips: (plan) => page.evaluate(trips, plan),
    flow: (plan) => page.evaluate(flow, plan),
    via: () => page.evaluate(() => port.via),
  };
}

function direct(page) {
  return page.waitFor(() => port.via === "direct");
}

function called(page) {
  return page.waitFor(() => globalThis.port !== undefined);
}

/** Both in one browser, as two tabs are. */
async function tabs(options) {
  const { pages: [one, two], close } = await pages(2);
  ends.push(close);
  const id = await one.evaluate(join, { url, token, ...options });
  await two.evaluate(join, { url, token, ...options });
  await two.evaluate(async (id) => take(await mesh.meet(id)), id);
  await called(one);
  if (options.isDirect) for (const page of [one, two]) await direct(page);
  return ofPage(two);
}

async function tabAndNative(options) {
  const machine = native(options);
  const id = await machine.joined;
  const tab = await page(options);
  await tab.page.evaluate(async (id) => take(await mesh.meet(id)), id);
  if (options.isDirect) await Promise.all([machine.direct, direct(tab.page)]);
  return [ofPage(tab.page), machine];
}

async function natives(options) {
  const [one, two] = [native(options), native(options)];
  const id = await one.joined;
  await two.joined;
  await two.meet(id);
  if (options.isDirect) await Promise.all([one.direct, two.direct]);
  return two;
}
