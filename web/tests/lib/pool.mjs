/** A small server in place of a coordinator: the built files, blobs with Range, results taken and dropped. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { gunzipSync } from "node:zlib";

/** A built file's bytes, also if the build keeps only its compressed form. */
export async function readBuilt(path) {
  const plain = await readFile(path).catch(() => undefined);
  if (plain) return plain;
  const packed = await readFile(`${path}.gz`).catch(() => undefined);
  return packed && gunzipSync(packed);
}

const DIST = new URL("../../dist/", import.meta.url).pathname;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".svg": "image/svg+xml",
};
const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "cross-origin",
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-allow-methods": "*",
};

/** `blobs`: buffers by hash, or `{length, slice(from, to)}` for bytes that are made when asked for. `routes`: `{"METHOD /path": (request, response, body) => …}`, tried first. */
export async function startPool({ blobs = {}, routes = {} } = {}) {
  const results = new Map();
  const server = createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      answer(request, response, Buffer.concat(pieces)).catch((error) => {
        response.writeHead(500, ISOLATED).end(String(error));
      });
    });
  });

  async function answer(request, response, body) {
    const { pathname } = new URL(request.url, "http://pool");
    const route = routes[`${request.method} ${pathname}`];
    if (request.method === "OPTIONS") return response.writeHead(204, ISOLATED).end();
    if (route) return route(request, response, body);
    if (pathname === "/blank") return send(response, 200, "text/html", "<!doctype html><title>blank</title>");
    if (pathname.startsWith("/node/blobs/")) return sendBlob(request, response, blobs[pathname.slice(12)]);
    if (pathname.startsWith("/node/results/")) {
      results.set(pathname.slice(14), body);
      const hash = createHash("sha256").update(body.subarray(0, 64)).digest("hex");
      return send(response, 200, "application/json", JSON.stringify({ hash, size: body.length }));
    }
    const path = fileOf(pathname);
    const file = path && (await readBuilt(path));
    if (!file) return send(response, 404, "text/plain", `no ${pathname}`);
    response.writeHead(200, fileHeaders(path)).end(file);
  }

  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, results, close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    } };
}

/** The built file an address means, if it means one. */
export function fileOf(pathname) {
  if (pathname === "/" || pathname === "/detect") return join(DIST, "index.html");
  if (pathname === "/join") return join(DIST, "join.html");
  if (pathname.startsWith("/assets/")) return join(DIST, normalize(pathname));
  return undefined;
}

export function fileHeaders(path) {
  return { ...ISOLATED, "content-type": TYPES[extname(path)] ?? "application/octet-stream" };
}

export function send(response, status, type, body, headers = {}) {
  response.writeHead(status, { ...ISOLATED, "content-type": type, ...headers }).end(body);
}

function sendBlob(request, response, bytes) {
  if (!bytes) return send(response, 404, "text/plain", "no such blob");
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
  const type = "application/octet-stream";
  if (!range) return send(response, 200, type, bytes.slice(0, bytes.length));
  const part = bytes.slice(Number(range[1]), Number(range[2]) + 1);
  const headers = { "content-range": `bytes ${range[1]}-${range[2]}/${bytes.length}` };
  send(response, 206, type, part, headers);
}
