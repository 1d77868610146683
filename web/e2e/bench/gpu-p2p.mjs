// Measures shared GPU buffers between two tabs: a version fetched and a version sent, directly and through the relay, beside the
// same bytes over a bare RTCDataChannel.
//
//   node gpu-p2p.mjs URL TOKEN RUNS
//
// Prints one JSON object: for each way and size the seconds of the best run and the megabytes a second; and the milliseconds of
// the smallest version there and back.

import { createServer } from "node:http";

import { launchPlain } from "../../tests/lib/plain.mjs";

const [url, token, runs = "5"] = process.argv.slice(2);
const SIZES = [4 << 20, 16 << 20];
/** Time for two tabs to find a direct way. */
const DIRECT_SECONDS = 20;

const site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>"));
await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${site.address().port}/`;
const found = { direct: await shared(true), relay: await shared(false), bare: await bare() };
site.closeAllConnections();
site.close();
console.log(JSON.stringify(found, null, 2));

/** With the SDK. */
async function shared(isDirect) {
  const browser = await launchPlain();
  try {
    const pages = [await browser.open(address), await browser.open(address)];
    const ids = [];
    for (const page of pages) ids.push(await page.evaluate(join, { url, token, isDirect }));
    await pages[1].evaluate(async (id) => void (globalThis.connection = await device.createGPUConnection(id)), ids[0]);
    await pages[0].evaluate(async () => void (globalThis.connection = await called));
    if (isDirect) await pages[1].waitFor(() => connection.via === "direct", undefined, DIRECT_SECONDS);
    const figures = { roundTripMs: 1000 * Math.min(...(await measure(pages, 4)).map(({ pull, push }) => pull + push)) };
    for (const size of SIZES) {
      const times = await measure(pages, size);
      const best = (what) => rate(size, Math.min(...times.map((time) => time[what])));
      figures[`${size >> 20} MiB`] = { pull: best("pull"), push: best("push") };
    }
    figures.via = await pages[1].evaluate(() => connection.via);
    if (figures.via !== (isDirect ? "direct" : "relay")) throw new Error(`measured by way of ${figures.via}`);
    return figures;
  } finally {
    await browser.close();
  }
}

async function join({ url, token, isDirect }) {
  if (!isDirect) delete globalThis.RTCPeerConnection;
  const p2p = await import(`${url}/assets/gpu-p2p.js`);
  const mesh = await p2p.connectMesh({ url, token, name: "bench" });
  globalThis.device = await (await navigator.gpu.requestAdapter()).requestDevice();
  mesh.onpeer = (peer) => (globalThis.called = device.createGPUConnection(peer));
  return mesh.id;
}

/** Seconds of each run. */
async function measure([one, two], size) {
  await one.evaluate((size) => {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({ size, usage });
    device.queue.writeBuffer(buffer, 0, crypto.getRandomValues(new Uint8Array(Math.min(size, 65_536))));
    globalThis.handle = connection.exportBuffer(buffer, { rights: ["read", "write"] });
    connection.postMessage(handle);
  }, size);
  await two.evaluate(async () => void (globalThis.copy = await connection.importBuffer(await connection.receive())));
  const times = [];
  for (let run = 0; run < Number(runs); run++) {
    await one.evaluate(async () => void (await connection.exported(handle).push()));
    const time = await two.evaluate(async () => {
      const [start, before] = [performance.now(), copy.version];
      await copy.pull();
      const pulled = performance.now();
      if (copy.version === before) throw new Error("nothing new was fetched");
      await copy.push();
      return { pull: (pulled - start) / 1000, push: (performance.now() - pulled) / 1000 };
    });
    times.push(time);
  }
  await two.evaluate(() => connection.release(copy));
  return times;
}

/** By hand: one channel, ordered, 64 KiB a message, as much waiting as the SDK allows itself. */
async function bare() {
  const browser = await launchPlain();
  try {
    const [one, two] = [await browser.open(address), await browser.open(address)];
    const offer = await one.evaluate(async () => {
      globalThis.peer = new RTCPeerConnection();
      globalThis.channel = peer.createDataChannel("bare");
      channel.binaryType = "arraybuffer";
      await peer.setLocalDescription();
      await new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve()));
      return peer.localDescription.toJSON();
    });
    const answer = await two.evaluate(async (offer) => {
      globalThis.peer = new RTCPeerConnection();
      peer.ondatachannel = ({ channel }) => {
        let got = 0;
        channel.binaryType = "arraybuffer";
        channel.onmessage = ({ data }) => {
          if (typeof data === "string") got = -Number(data);
          else got += data.byteLength;
          if (got === 0) channel.send("all");
        };
      };
      await peer.setRemoteDescription(offer);
      await peer.setLocalDescription();
      await new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve()));
      return peer.localDescription.toJSON();
    }, offer);
    await one.evaluate(async (answer) => void (await peer.setRemoteDescription(answer)), answer);
    await one.waitFor(() => channel.readyState === "open");
    const figures = {};
    for (const size of SIZES) {
      const times = [];
      for (let run = 0; run < Number(runs); run++) times.push(await one.evaluate(send, size));
      figures[`${size >> 20} MiB`] = rate(size, Math.min(...times));
    }
    return figures;
  } finally {
    await browser.close();
  }
}

async function send(size) {
  const bytes = new Uint8Array(size);
  const start = performance.now();
  const done = new Promise((resolve) => (channel.onmessage = resolve));
  channel.send(String(size));
  channel.bufferedAmountLowThreshold = 1 << 20;
  for (let at = 0; at < size; at += 65_536) {
    if (channel.bufferedAmount > 4 << 20) await new Promise((resolve) => (channel.onbufferedamountlow = resolve));
    channel.send(bytes.subarray(at, at + 65_536));
  }
  await done;
  return (performance.now() - start) / 1000;
}

function rate(size, seconds) {
  return { seconds: Number(seconds.toFixed(4)), megabytesPerSecond: Math.round(size / 1e6 / seconds) };
}
