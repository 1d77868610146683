// Somebody between a tab and its coordinator who changes what passes: a proxy that is not to be trusted.

import { createServer, request as forward } from "node:http";
import { connect } from "node:net";

import { after } from "../../tests/lib/after.mjs";

/** The pool as a tab sees it through this proxy. `frames(bytes)` gives what a tab gets for bytes of its socket, `blob(hash, bytes)`
 * for a blob; both of the same length. Goes with its test. */
export async function between(t, pool, { frames = (bytes) => bytes, blob }) {
  const { hostname, port } = new URL(pool.url);
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const onward = forward({ hostname, port, method, path: url, headers }, async (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      const hash = blob && /^\/node\/blobs\/(\w+)$/.exec(url)?.[1];
      if (!hash) return answer.pipe(response);
      response.end(blob(hash, Buffer.concat(await answer.toArray())));
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.on("upgrade", ({ method, url, rawHeaders }, socket) => {
    const onward = connect(Number(port), hostname, () => {
      const lines = [`${method} ${url} HTTP/1.1`];
      for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
      onward.write(`${lines.join("\r\n")}\r\n\r\n`);
      socket.pipe(onward);
      onward.on("data", (bytes) => socket.write(frames(bytes)));
    });
    for (const [end, other] of [[onward, socket], [socket, onward]]) {
      end.on("error", () => end.destroy());
      end.on("close", () => other.destroy());
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(t, async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return { ...pool, join: `${url}/join${new URL(pool.join).hash}` };
}
