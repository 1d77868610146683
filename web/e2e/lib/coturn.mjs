// A real TURN server, which is a STUN server too.

import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { join } from "node:path";

import { after } from "../../tests/lib/after.mjs";
import { folder } from "./places.mjs";
import { Hopeless, until } from "./until.mjs";

const HOST = "127.0.0.1";

/** `words` say whom it lets in: `--user NAME:PASSWORD`, or `--use-auth-secret --static-auth-secret SECRET`. `said` keeps its log. */
export async function coturn(t, words) {
  const port = await freePort();
  const base = folder(t);
  const usual = ["-n", "--listening-ip", HOST, "--relay-ip", HOST, "--listening-port", String(port), "--realm", "shoal.test"];
  const quiet = ["--no-tls", "--no-dtls", "--no-cli", "--pidfile", join(base, "pid"), "--userdb", join(base, "users")];
  const open = ["--allow-loopback-peers", "--lt-cred-mech", "--verbose", "--log-file", "stdout", "--simple-log"];
  const child = spawn("turnserver", [...usual, ...quiet, ...open, ...words], { stdio: ["ignore", "pipe", "pipe"] });
  const server = { url: `turn:${HOST}:${port}?transport=udp`, stun: `stun:${HOST}:${port}`, port, said: "" };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => (server.said = (server.said + text).slice(-200_000)));
  }
  child.on("error", (error) => (server.said += `turnserver: ${error.message}; is coturn installed?`));
  const ended = new Promise((resolve) => child.once("close", resolve));
  after(t, async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await until("coturn to answer", async () => {
    if (child.exitCode !== null || !child.pid) throw new Hopeless(`it ended: ${server.said}`);
    return answers(port);
  }, 30);
  return server;
}

/** A UDP port nobody has at this moment. */
export async function freePort() {
  const socket = createSocket("udp4");
  await new Promise((resolve) => socket.bind(0, HOST, resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

/** Whether a STUN request is answered. */
function answers(port) {
  const ask = Buffer.from("000100002112a442000000000000000000000000", "hex");
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const end = (answer) => {
      clearTimeout(late);
      socket.close();
      resolve(answer);
    };
    const late = setTimeout(() => end(false), 500);
    socket.once("message", () => end(true));
    socket.once("error", () => end(false));
    socket.send(ask, port, HOST);
  });
}
