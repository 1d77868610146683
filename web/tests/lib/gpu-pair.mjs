/** A page with two GPU devices that share buffers over a `MessageChannel`. */

import { launch, openPage } from "./chromium.mjs";
import { startPool } from "./pool.mjs";

/** `{page, close()}`; the page has what `setUp` gives it. */
export async function openPair() {
  const [pool, browser] = await Promise.all([startPool(), launch()]);
  const page = await openPage(browser, `${pool.url}/blank`);
  await page.evaluate(setUp);
  return {
    page,
    close: async () => {
      await browser.close();
      await pool.close();
    },
  };
}

/** Gives the page `connect()`: two devices with a connection each; and some helpers. */
async function setUp() {
  const p2p = await import("/assets/gpu-p2p.js");
  const USAGE = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const newDevice = async (descriptor) => (await navigator.gpu.requestAdapter()).requestDevice(descriptor);
  const fill = (device, values, usage = USAGE, label = "numbers") => {
    const buffer = device.createBuffer({ label, size: values.byteLength, usage, mappedAtCreation: true });
    new values.constructor(buffer.getMappedRange()).set(values);
    buffer.unmap();
    return buffer;
  };
  const read = async (device, buffer, Type = Uint32Array) => {
    const staging = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const values = [...new Type(staging.getMappedRange().slice())];
    staging.destroy();
    return values;
  };
  const connect = async ({ options = [], ports = (port) => port } = {}) => {
    const { port1, port2 } = new MessageChannel();
    const devices = await Promise.all([newDevice(options[0]), newDevice(options[1])]);
    const peers = [new p2p.MessagePeer(port1), ports(new p2p.MessagePeer(port2))];
    const connections = await Promise.all(devices.map((device, i) => device.createGPUConnection(peers[i])));
    const [owner, guest] = devices.map((device, i) => ({ device, connection: connections[i] }));
    return { owner, guest };
  };
  /** The code of what goes wrong, and its words. */
  const refusal = (promise) =>
    Promise.resolve(promise).then(
      () => "nothing was refused",
      (error) => `${error.name} ${error.code}: ${error.message}`,
    );
  Object.assign(globalThis, { p2p, USAGE, fill, read, connect, refusal, newDevice });
}
