// Pages that talk by Shoal's mesh, for measuring: what they run inside, and a browser that does not slow hidden ones.

import { createServer } from "node:http";

import { launchPlain } from "../../tests/lib/plain.mjs";

/** Of two pages only one is seen, and the other must not be slowed for it. */
const AWAKE = ["--disable-background-timer-throttling", "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows"];

/** Empty pages of an origin of their own, and how to end everything. */
export async function pages(count) {
  const site = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>"));
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  const browser = await launchPlain({ args: AWAKE });
  const found = [];
  for (let page = 0; page < count; page++) found.push(await browser.open(`http://127.0.0.1:${site.address().port}/`));
  const close = async () => {
    await browser.close();
    site.closeAllConnections();
    site.close();
  };
  return { pages: found, close };
}

/** In a page: joins the pool and answers whoever calls. What is said on channel 1 is said back on channel 2; of channel 3 what came
 * is told on channel 2, as a message of four bytes with its length. */
export async function join({ url, token, isDirect }) {
  if (!isDirect) delete globalThis.RTCPeerConnection;
  const { connectMesh } = await import(`${url}/assets/gpu-p2p.js`);
  const at = () => performance.timeOrigin + performance.now();
  globalThis.news = { at, calledAt: at() };
  globalThis.mesh = await connectMesh({ url, token, name: "bench" });
  news.joinedAt = at();
  globalThis.take = (port) => {
    globalThis.port = port;
    port.onmessage = (channel, bytes) => {
      news.heardAt ??= at();
      if (channel === 1) port.send(2, bytes);
      else if (channel === 3) port.send(2, new Uint8Array(Uint32Array.of(bytes.length).buffer));
      else globalThis.answered?.(bytes);
    };
    const look = () => (port.via === "direct" ? (news.directAt ??= at()) : setTimeout(look, 1));
    look();
  };
  mesh.onpeer = async (peer) => take(await mesh.meet(peer));
  return mesh.id;
}

/** In a page: milliseconds there and back, each of so many times. */
export async function trips({ count, size }) {
  const times = [];
  for (let trip = 0; trip < count; trip++) {
    const start = performance.now();
    await new Promise((resolve) => {
      globalThis.answered = resolve;
      port.send(1, new Uint8Array(size));
    });
    times.push(performance.now() - start);
  }
  return times;
}

/** In a page: seconds until the other end has so many bytes, of which `ahead` messages may be under way. */
export async function flow({ bytes, message, ahead }) {
  let [sent, arrived] = [0, 0];
  const start = performance.now();
  await new Promise((resolve) => {
    const more = () => {
      for (; sent < bytes && sent - arrived < ahead * message; sent += message) port.send(3, new Uint8Array(message));
    };
    globalThis.answered = (told) => {
      arrived += new DataView(told.buffer, told.byteOffset).getUint32(0, true);
      if (arrived >= bytes) resolve();
      else more();
    };
    more();
  });
  return (performance.now() - start) / 1000;
}
