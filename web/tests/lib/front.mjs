/** The files of this build in front of a coordinator, so that tests need no new binary after each change. */

import { createServer, request as forward } from "node:http";
import { connect } from "node:net";
import { extname } from "node:path";
import { fileHeaders, fileOf, readBuilt } from "./pool.mjs";

/** Answers like the coordinator, with `url` of the front. `change.blob(hash, bytes)` and `change.frames(bytes)`, if given, answer
 * with what a tab gets instead: of a blob it fetches, and of the bytes that come over its socket. `change.file(pathname, bytes)`:
 * of a file of the build. `change.cut({hash, range})` hears of each blob asked for; `{after, stays}` breaks the connection after so many bytes, or nothing more comes. */
export async function startFront(coordinator, change = {}) {
  const { hostname, port } = new URL(coordinator.url);
  const served = new Set();
  const policy = (await fetch(coordinator.url)).headers.get("content-security-policy");
  // Pages come with the coordinator's own policy, for this address.
  const headersOf = (path, { host }) => {
    const strict = { "content-security-policy": policy.replaceAll(`${hostname}:${port}`, host) };
    return { ...fileHeaders(path), ...(extname(path) === ".html" ? strict : {}) };
  };
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, coordinator.url);
    const path = request.method === "GET" && fileOf(pathname);
    const bytes = path && (await readBuilt(path));
    if (bytes) served.add(pathname);
    const { method, url, headers } = request;
    if (bytes) return response.writeHead(200, headersOf(path, headers)).end(change.file?.(pathname, bytes) ?? bytes);
    const onward = forward({ hostname, port, method, path: url, headers }, async (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      const hash = method === "GET" && /^\/node\/blobs\/(\w+)$/.exec(pathname)?.[1];
      const cut = hash && change.cut?.({ hash, range: headers.range });
      if (cut) return pipeUntil(answer, response, cut);
      if (!hash || !change.blob) return answer.pipe(response);
      response.end(change.blob(hash, Buffer.concat(await answer.toArray())));
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  const upgraded = new Set();
  server.on("upgrade", (request, socket, head) => {
    upgraded.add(socket);
    socket.on("close", () => upgraded.delete(socket));
    const onward = connect(Number(port), hostname, () => {
      const lines = [`${request.method} ${request.url} HTTP/1.1`];
      const raw = request.rawHeaders;
      for (let at = 0; at < raw.length; at += 2) lines.push(`${raw[at]}: ${raw[at + 1]}`);
      onward.write(`${lines.join("\r\n")}\r\n\r\n`);
      onward.write(head);
      socket.pipe(onward);
      if (!change.frames) return onward.pipe(socket);
      onward.on("data", (bytes) => socket.write(change.frames(bytes)));
      onward.on("end", () => socket.end());
    });
    for (const end of [onward, socket]) {
      end.on("error", () => end.destroy());
      end.on("close", () => (end === socket ? onward : socket).destroy());
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    ...coordinator,
    url,
    /** Paths of the build's files that were asked for. */
    served,
    joinLink: `${url}/join#${coordinator.token}`,
    close: async () => {
      server.closeAllConnections();
      for (const socket of upgraded) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** What was sent comes before the connection ends. */
function pipeUntil(answer, response, { after, stays }) {
  let left = after;
  answer.on("data", (bytes) => {
    const part = bytes.subarray(0, left);
    left -= part.length;
    response.write(part);
    if (left > 0) return;
    answer.destroy();
    if (!stays) response.socket.end();
  });
}
