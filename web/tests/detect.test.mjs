/** The detection page, with a real detector and a real picture: the same boxes here, on the pool and from the command line. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { connect } from "../dist/assets/sdk.js";
import { launch, openPage } from "./lib/chromium.mjs";
import { BINARY, startCoordinator, startNode } from "./lib/coordinator.mjs";
import { startFront } from "./lib/front.mjs";
import { onnxFile } from "./lib/onnx-file.mjs";

const OUTSIDE = process.env.SHOAL_OUTSIDE;
const skip = !OUTSIDE && process.env.SHOAL_REQUIRE_ALL !== "1" && "SHOAL_OUTSIDE names no folder";
const YOLO = join(OUTSIDE ?? "", "yolov8n/package/lib/model/yolov8n.onnx");
const BUS = join(OUTSIDE ?? "", "pictures/ultralytics/assets/bus.jpg");
/** No detector. */
const LINE = onnxFile({ nodes: [["Neg", ["x"], "y"]], inputs: { x: ["rows", 3] }, outputs: { y: ["rows", 3] } });

const BUS_BASE64 = skip ? "" : readFileSync(BUS).toString("base64");

let coordinator;
let front;
let browser;
let node;
let shoal;
let folder;

before(async () => {
  if (skip) return;
  [coordinator, browser, folder] = await Promise.all([
    startCoordinator(),
    launch({ args: ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"] }),
    mkdtemp(join(tmpdir(), "shoal-detect-")),
  ]);
  front = await startFront(coordinator);
  shoal = await connect(coordinator.url, coordinator.key);
});

after(async () => {
  await browser?.close();
  await front?.close();
  await node?.close();
  await coordinator?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

async function until(what, isSo) {
  for (const start = Date.now(); !(await isSo()); await new Promise((resolve) => setTimeout(resolve, 50))) {
    assert.ok(Date.now() - start < 120_000, `waited in vain for ${what}`);
  }
}

/** The page, and what the browser complained about. */
async function open(t, options = {}) {
  const context = await browser.newContext(options);
  t.after(() => context.close());
  const page = await openPage(context, "about:blank");
  page.setDefaultTimeout(120_000);
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(`${front.url}/detect#key=${front.key}`);
  await page.getByRole("heading", { name: "Detect" }).waitFor();
  return { context, page, complaints };
}

const picker = (page) => page.locator('input[type="file"][accept^="image"]');

test("without a model the page says how to add one, and takes a file; what is no detector is told so", { skip }, async (t) => {
  const { page, complaints } = await open(t);
  await page.getByText("This pool has no model yet").waitFor();
  await page.getByText("shoal model add yolov8n.onnx").waitFor();
  const models = page.locator('input[type="file"][accept=".onnx"]');
  await models.setInputFiles({ name: "line.onnx", mimeType: "application/octet-stream", buffer: LINE });
  await page.getByText("line is no detector: it takes no picture, but x float32[?x3]").waitFor();
  await models.setInputFiles({ name: "bad.onnx", mimeType: "application/octet-stream", buffer: Buffer.from("nothing") });
  await page.getByText(/bad\.onnx was not added: /).waitFor();
  await shoal.unserve("line");
  assert.deepEqual(complaints.filter((text) => !/422|Failed to load resource/.test(text)), []);
});

test("boxes are the same in the page, on the pool and from the command line", { skip }, async (t) => {
  node = await startNode(coordinator.joinLink);
  await shoal.addModel(new Blob([await readFile(YOLO)]), { name: "yolov8n", strangers: true });
  await until("the node to have it", async () => (await shoal.models())[0]?.readyOn.length === 1);
  const { page } = await open(t);
  // As a PNG: each decoder of JPEG rounds otherwise.
  const png = await page.evaluate(async (jpeg) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.fromBase64?.(jpeg) ?? Uint8Array.from(atob(jpeg), (c) => c.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    return [...new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer())];
  }, (await readFile(BUS)).toString("base64"));
  const file = join(folder, "bus.png");
  await writeFile(file, Buffer.from(png));
  const words = ["infer", "yolov8n", "--image", file, "--task", "detect", "--json", "--url", coordinator.url, "--key", coordinator.key];
  const { boxes } = JSON.parse((await promisify(execFile)(BINARY, words)).stdout);
  assert.ok(boxes.length >= 5, JSON.stringify(boxes));

  await picker(page).setInputFiles(file);
  await page.getByText("Found").waitFor();
  const look = (where) =>
    page.evaluate(
      async ({ url, key, where, bytes }) => {
        const { connect } = await import(`${url}/assets/sdk.js`);
        const model = await (await connect(url, key)).model("yolov8n");
        const { boxes, ran, width, height } = await model.detect(new Blob([Uint8Array.from(bytes)]), { where });
        model.close();
        return { boxes, ran, width, height };
      },
      { url: front.url, key: front.key, where, bytes: png },
    );
  const there = await look("remote");
  assert.deepEqual([there.width, there.height], [810, 1080]);
  near(there.boxes, boxes, 1e-3);
  assert.ok(there.ran.bytes.sent < 480 * 640 * 3 + 400, `${there.ran.bytes.sent} bytes were sent`);
  assert.ok(there.ran.bytes.received < 2_000, `${there.ran.bytes.received} bytes came back`);
  near((await look("local")).boxes, boxes, 0.05);
});

/** The same things, their sides and scores within so much. */
function near(found, wanted, tolerance) {
  assert.deepEqual(found.map(({ name }) => name), wanted.map(({ name }) => name));
  found.forEach(({ box, score }, at) => {
    assert.ok(Math.abs(score - wanted[at].score) < tolerance, `${score} instead of ${wanted[at].score}`);
    box.forEach((side, of) => assert.ok(Math.abs(side - wanted[at].box[of]) < 10 * tolerance, `${box} instead of ${wanted[at].box}`));
  });
}

test("a detector in two slices finds the same boxes, and the page shows what each slice costs", { skip }, async (t) => {
  const nodes = [await startNode(coordinator.joinLink), await startNode(coordinator.joinLink)];
  t.after(() => Promise.all(nodes.map((one) => one.close())));
  await shoal.addModel(new Blob([await readFile(YOLO)]), { name: "sliced", strangers: true, split: 2, wire: "f16" });
  t.after(() => shoal.unserve("sliced"));
  const entry = async () => (await shoal.models()).find(({ name }) => name === "sliced");
  await until("two slices", async () => (await entry())?.split?.ready);
  assert.equal((await entry()).readyOn.length, 2);
  const { page, complaints } = await open(t);
  const look = (name, where) =>
    page.evaluate(
      async ({ url, key, name, where, jpeg }) => {
        const { connect } = await import(`${url}/assets/sdk.js`);
        const model = await (await connect(url, key)).model(name);
        const { boxes, ran } = await model.detect(new Blob([Uint8Array.from(atob(jpeg), (c) => c.charCodeAt(0))]), { where });
        return { boxes, ran };
      },
      { url: front.url, key: front.key, name, where, jpeg: BUS_BASE64 },
    );
  const whole = await look("yolov8n", "remote");
  assert.deepEqual([whole.ran.where, whole.ran.stages], ["remote", 1]);
  const split = await look("sliced", "split");
  assert.deepEqual([split.ran.where, split.ran.stages], ["split", 2]);
  assert.match(split.ran.why, /2 nodes, a slice each/);
  assert.ok(split.ran.bytes.received < 2_000, "boxes come back, not tensors");
  near(split.boxes, whole.boxes, 0.05);
  await assert.rejects(look("yolov8n", "split"), /yolov8n is not split/);

  await page.locator(".model select").selectOption("sliced");
  await page.getByRole("radio", { name: "Split" }).check({ force: true });
  await picker(page).setInputFiles(BUS);
  await page.getByText(/Ran in 2 slices/).waitFor();
  const rows = page.locator("table.slices tbody tr");
  await until("what slices cost", async () => /ms.*[KM]iB/s.test(await rows.first().innerText()));
  assert.equal(await rows.count(), 2);
  assert.deepEqual(complaints, []);
});

test("a picture gets its boxes wherever the model runs, with milliseconds and bytes of each stage", { skip }, async (t) => {
  const { page, complaints } = await open(t);
  const where = (name) => page.getByRole("radio", { name }).check({ force: true });
  await where("Remote");
  await picker(page).setInputFiles(BUS);
  await page.getByText("Found 4 × person, 1 × bus.").or(page.getByText("Found 1 × bus, 4 × person.")).waitFor();
  for (const stage of ["Prepare", "Send", "Wait", "Run", "Receive", "Draw", "In all"]) {
    await page.getByRole("rowheader", { name: stage }).waitFor();
  }
  assert.match(await page.getByRole("row", { name: /Send/ }).innerText(), /KiB/);
  assert.ok(await painted(page), "boxes are drawn");
  await where("Local");
  await page.getByText("Ran in this page").waitFor();
  assert.equal(await page.getByRole("rowheader", { name: "Send" }).isVisible(), false);
  assert.equal(await page.getByRole("radio", { name: "Split" }).isDisabled(), true);
  await where("Auto");
  await page.getByText(/ms on the pool|measuring/).waitFor();

  // A file that is none, and a camera that is refused, are told so.
  await picker(page).setInputFiles({ name: "no.png", mimeType: "image/png", buffer: Buffer.from("no picture") });
  await page.getByRole("alert").getByText("no.png is no picture or video that this browser can read.").waitFor();
  assert.deepEqual(complaints, []);
});

test("a camera is looked at frame by frame, and one that is refused is told so", { skip }, async (t) => {
  const { context, page } = await open(t);
  await context.grantPermissions(["camera"]);
  await page.getByRole("radio", { name: "Remote" }).check({ force: true });
  await page.getByRole("button", { name: "Camera" }).click();
  await page.getByText(/frames\/s/).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Choose a picture or video").waitFor();
  await page.evaluate(() => {
    navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("no", "NotAllowedError"));
  });
  await page.getByRole("button", { name: "Camera" }).click();
  await page.getByRole("alert").getByText("The camera was refused.").waitFor();
});

test("a video file is looked at frame by frame, and one that no browser can play is told so", { skip }, async (t) => {
  const { page, complaints } = await open(t);
  await page.getByRole("radio", { name: "Remote" }).check({ force: true });
  // The picture as a film of two seconds, as this browser records it.
  const film = await page.evaluate(async (jpeg) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(jpeg), (c) => c.charCodeAt(0))]));
    const canvas = Object.assign(document.createElement("canvas"), { width: 405, height: 540 });
    const draw = () => canvas.getContext("2d").drawImage(bitmap, 0, 0, 405, 540);
    draw();
    const recorder = new MediaRecorder(canvas.captureStream(10), { mimeType: "video/webm" });
    const parts = [];
    recorder.ondataavailable = ({ data }) => parts.push(data);
    const ended = new Promise((resolve) => (recorder.onstop = resolve));
    recorder.start();
    const drawing = setInterval(draw, 100);
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    clearInterval(drawing);
    recorder.stop();
    await ended;
    return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
  }, BUS_BASE64);
  assert.ok(film.length > 1_000, `${film.length} bytes were recorded`);
  await picker(page).setInputFiles({ name: "bus.webm", mimeType: "video/webm", buffer: Buffer.from(film) });
  await page.getByText(/frames\/s/).waitFor();
  await until("boxes over the film", () => painted(page));
  assert.equal(await page.getByLabel("bus.webm").evaluate((video) => video instanceof HTMLVideoElement && !video.paused), true);
  await picker(page).setInputFiles({ name: "no.webm", mimeType: "video/webm", buffer: Buffer.from("no video") });
  await page.getByRole("alert").getByText("no.webm is no video that this browser can play.").waitFor();
  assert.deepEqual(complaints, []);
});

/** Whether anything is drawn over the picture. */
function painted(page) {
  return page.locator("canvas.boxes").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((value, at) => at % 4 === 3 && value > 0);
  });
}
