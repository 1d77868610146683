// A WebSocket client that sends binary messages: what Node 20 has none of.

import { randomBytes } from "node:crypto";
import { request } from "node:http";

const [BINARY, CLOSE, PING, PONG] = [2, 8, 9, 10];

/** `{send(bytes), end()}` once it is open; `onMessage` hears what comes, `onEnd` that it is over. */
export function openSocket(url, { onMessage, onEnd }) {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": randomBytes(16).toString("base64"),
  };
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers });
    asked.on("error", reject);
    asked.on("response", (answer) => reject(new Error(`${url}: ${answer.statusCode} instead of a socket`)));
    asked.on("upgrade", (_answer, socket, head) => {
      const send = (bytes, kind = BINARY) => socket.writable && socket.write(frame(kind, bytes));
      const take = frames((kind, bytes) => {
        if (kind === BINARY) onMessage(bytes);
        else if (kind === PING) send(bytes, PONG);
        else if (kind === CLOSE) socket.end();
      });
      socket.setNoDelay(true);
      socket.on("data", take);
      socket.on("error", () => socket.destroy());
      socket.on("close", onEnd);
      // The first message may come with the answer: whoever opens it has the socket by then.
      setImmediate(() => take(head));
      resolve({ send, end: () => socket.destroy() });
    });
    asked.end();
  });
}

function frame(kind, bytes) {
  const mask = randomBytes(4);
  const { length } = bytes;
  const head = [0x80 | kind];
  if (length < 126) head.push(0x80 | length);
  else if (length < 1 << 16) head.push(0x80 | 126, length >> 8, length & 255);
  else head.push(0x80 | 127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255);
  return Buffer.concat([Buffer.from(head), mask, Buffer.from(bytes, 0).map((byte, at) => byte ^ mask[at & 3])]);
}

/** Takes bytes as they come and tells of each whole frame. A server's are not masked, and ours sends no fragments. */
function frames(tell) {
  let rest = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      if (rest.length < 2) return;
      const short = rest[1] & 0x7f;
      const start = { 126: 4, 127: 10 }[short] ?? 2;
      if (rest.length < start) return;
      const length = { 126: () => rest.readUInt16BE(2), 127: () => Number(rest.readBigUInt64BE(2)) }[short]?.() ?? short;
      if (rest.length < start + length) return;
      tell(rest[0] & 15, rest.subarray(start, start + length));
      rest = rest.subarray(start + length);
    }
  };
}
