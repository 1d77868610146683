// Measures `bench offload`: a frame for a detector in the page and on the pool, in turns.
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
const body = JSON.stringify({ kind: "onnx", name: "yolov8n", model, strangers: true });
await fetch(`${url}/api/v1/services`, { method: "POST", headers, body });
await until("the node to have the model", async () => (await fetch(`${url}/v2/models/yolov8n/ready`, { headers })).ok, 120);

const browser = await launchPlain();
try {
  const page = await browser.open(`${url}/join`);
  const found = await page.evaluate(measure, { url, key, picture, frames: Number(frames) });
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}

/** Runs in the page. */
async function measure({ url, key, picture, frames }) {
  const { connect } = await import(`${url}/assets/sdk.js`);
  const shoal = await connect(url, key);
  const model = await shoal.model("yolov8n");
  const bitmap = await createImageBitmap(await shoal.blob(picture));
  const rans = { local: [], remote: [] };
  for (let frame = 0; frame <= frames; frame++) {
    for (const where of ["local", "remote"]) {
      const { ran, boxes } = await model.detect(bitmap, { where });
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
    sent: least("remote", ({ bytes }) => bytes.sent),
    received: least("remote", ({ bytes }) => bytes.received),
    prepare: Math.min(least("local", ({ ms }) => ms.prepare), least("remote", ({ ms }) => ms.prepare)),
  };
}
