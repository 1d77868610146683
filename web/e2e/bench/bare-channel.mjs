// The peer of our links: a data channel between two pages, written by hand. One channel, ordered, 64 KiB a message.

/** Connects two pages and measures as the others are measured. */
export async function bareChannel([one, two]) {
  const offer = await two.evaluate(offering);
  const answer = await one.evaluate(answering, offer);
  await two.evaluate(async (answer) => void (await peer.setRemoteDescription(answer)), answer);
  await two.waitFor(() => channel.readyState === "open");
  const [go, push] = [(plan) => two.evaluate(trips, plan), (plan) => two.evaluate(flow, plan)];
  return { trips: go, flow: push, via: async () => "direct" };
}

async function offering() {
  globalThis.peer = new RTCPeerConnection();
  globalThis.channel = peer.createDataChannel("bare");
  channel.binaryType = "arraybuffer";
  await peer.setLocalDescription();
  await new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve()));
  return peer.localDescription.toJSON();
}

/** Says back what is small; of the rest that all that was announced came. */
async function answering(offer) {
  globalThis.peer = new RTCPeerConnection();
  peer.ondatachannel = ({ channel }) => {
    let left = 0;
    channel.binaryType = "arraybuffer";
    channel.onmessage = ({ data }) => {
      if (typeof data === "string") left = Number(data);
      else if (left === 0) channel.send(data);
      else if ((left -= data.byteLength) === 0) channel.send("all");
    };
  };
  await peer.setRemoteDescription(offer);
  await peer.setLocalDescription();
  await new Promise((resolve) => (peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve()));
  return peer.localDescription.toJSON();
}

async function trips({ count, size }) {
  const times = [];
  for (let trip = 0; trip < count; trip++) {
    const start = performance.now();
    const back = new Promise((resolve) => (channel.onmessage = resolve));
    channel.send(new Uint8Array(size));
    await back;
    times.push(performance.now() - start);
  }
  return times;
}

async function flow({ bytes }) {
  const message = new Uint8Array(65_536);
  const start = performance.now();
  const done = new Promise((resolve) => (channel.onmessage = resolve));
  channel.send(String(bytes));
  channel.bufferedAmountLowThreshold = 1 << 20;
  for (let sent = 0; sent < bytes; sent += message.length) {
    if (channel.bufferedAmount > 4 << 20) await new Promise((resolve) => (channel.onbufferedamountlow = resolve));
    channel.send(message);
  }
  await done;
  return (performance.now() - start) / 1000;
}
