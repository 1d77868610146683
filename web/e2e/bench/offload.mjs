// Measures `bench offload`: a frame for a detector in the page, on one node and split over two, in turns.
//
//   SHOAL_OUTSIDE=FOLDER node offload.mjs URL KEY FRAMES
//
// Prints one JSON object: the least milliseconds of each, and the bytes of a frame.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { launchPlain } from "../../tests/lib/plain.mjs";
import { Api } from "../lib/api.mjs";
import { until } from "../lib/until.mjs";

const [url, key, frames] = process.argv.slice(2);
const outside = process.env.SHOAL_OUTSIDE;
const api = new Api(url, key);
const model = await api.blob(await readFile(join(outside, "yolov8n/package/lib/model/yolov8n.onnx")));
const picture = await api.blob(await readFile(join(outside, "pictures/ultralytics/assets/bus.jpg")));
const headers = { authorization: `Bearer ${key}` };
const names = ["yolov8n", "split"];
for (const name of names) {
  const body = JSON.stringify({ kind: "onnx", name, model, strangers: true, ...(name === "split" && { split: "2" }) });
  const told = await fetch(`${url}/api/v1/services`, { method: "POST", headers, body });
  if (!told.ok) throw new Error(`${name}: ${await told.text()}`);
}
const service = async (name) =>
  (await (await fetch(`${url}/api/v1/services`, { headers })).json()).services.find((one) => one.name === name);
for (const name of names) {
  const isReady = async () => (await fetch(`${url}/v2/models/${name}/ready`, { headers })).ok;
  await until(`a node to have ${name}`, isReady, 120);
}
await until("two nodes to have a slice each", async () => (await service("split")).crew?.ready, 120);

const browser = await launchPlain();
try {
  const page = await browser.open(`${url}/join`);
  const found = await page.evaluate(measure, { url, key, picture, frames: Number(frames) });
  // What crosses between the two nodes for a frame, beside what the page sends and gets.
  const { stages } = (await service("split")).crew;
  const between = stages.reduce((sum, stage) => sum + (stage.handOnBytes ?? 0), 0);
  console.log(JSON.stringify({ ...found, between }));
} finally {
  await browser.close();
}

/** Runs in the page. */
async function measure({ url, key, picture, frames }) {
  const { connect } = await import(`${url}/assets/sdk.js`);
  const shoal = await connect(url, key);
  const [whole, slices] = [await shoal.model("yolov8n"), await shoal.model("split")];
  const places = { local: whole, remote: whole, split: slices };
  const bitmap = await createImageBitmap(await shoal.blob(picture));
  const rans = { local: [], remote: [], split: [] };
  for (let frame = 0; frame <= frames; frame++) {
    for (const [where, model] of Object.entries(places)) {
      const { ran, boxes } = await model.detect(bitmap, { where });
      if (ran.where !== where) throw new Error(`a frame for ${where} ran ${ran.where}: ${ran.why}`);
      if (boxes.length < 4) throw new Error(`only ${boxes.length} boxes were found`);
      // The first loads the model.
      if (frame > 0) rans[where].push(ran);
    }
  }
  const least = (where, pick) => Math.min(...rans[where].map(pick));
  return {
    local: least("local", ({ ms }) => ms.total),
    localRun: least("local", ({ ms }) => ms.run),
    remote: least("remote", ({ ms }) => ms.total),
    remoteRun: least("remote", ({ ms }) => ms.run),
    split: least("split", ({ ms }) => ms.total),
    splitRun: least("split", ({ ms }) => ms.run),
    sent: least("remote", ({ bytes }) => bytes.sent),
    received: least("remote", ({ bytes }) => bytes.received),
    localSent: least("local", ({ bytes }) => bytes.sent),
    localReceived: least("local", ({ bytes }) => bytes.received),
    splitSent: least("split", ({ bytes }) => bytes.sent),
    splitReceived: least("split", ({ bytes }) => bytes.received),
    prepare: Math.min(least("local", ({ ms }) => ms.prepare), least("remote", ({ ms }) => ms.prepare)),
  };
}
