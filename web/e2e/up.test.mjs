// What a newcomer sees: one command, a first result, a link that another device joins by.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { it } from "node:test";

import { openPage } from "../tests/lib/chromium.mjs";
import { Api } from "./lib/api.mjs";
import { folder } from "./lib/places.mjs";
import { start } from "./lib/processes.mjs";
import { browser } from "./lib/tabs.mjs";
import { until } from "./lib/until.mjs";
import { assertShared, mapJob } from "./lib/work.mjs";

it("up shows a result and links, and another device joins by the link", async (t) => {
  const data = folder(t);
  const child = start(t, ["up", "--listen", "0.0.0.0:0", "--data", join(data, "pool")]);
  const link = (name) => child.printed.match(new RegExp(`^${name}\\s+(\\S+)$`, "m"))?.[1];
  await until("the join link", () => link("join link"), 60);
  assert.match(child.printed, /first job: 1000 squares .* 0 1 4 9 16 25 … 998001/);
  // It comes below the link, at times a moment later.
  await until("the QR code", () => /█▀▀▀▀▀█/.test(child.printed));

  const { url, key } = JSON.parse(readFileSync(join(data, "pool/running.json"), "utf8"));
  const pool = { api: new Api(url, key) };
  const [machine] = await pool.api.nodes();

  // A profile of its own with the printed link, which is https if this machine has a network.
  const device = await browser(t, { profile: join(data, "profile") });
  const page = await openPage(device, link("join link"));
  assert.ok(await page.evaluate(() => isSecureContext && crossOriginIsolated));
  await page.getByRole("button", { name: "Lend this device" }).click();
  const guest = await until("the device", async () => (await pool.api.nodes()).find((node) => node.kind === "browser"));
  assert.ok(guest.gpu, "WebGPU is missing on the page");

  const job = await mapJob(pool.api);
  await page.getByRole("status").filter({ hasText: "at work" }).waitFor();
  const dashboard = await openPage(device, link("dashboard"));
  await dashboard.getByText(guest.name).first().waitFor();
  await dashboard.getByText(machine.name).first().waitFor();
  assertShared(await pool.api.done(job.id), [machine, guest]);
  job.check(await pool.api.result(job.id));
});

it("plain http answers this machine only", async (t) => {
  const data = folder(t);
  const child = start(t, ["serve", "--listen", "0.0.0.0:0", "--data", data]);
  const join = await until("the join link", () => child.printed.match(/join link\s+(\S+)/)?.[1], 20);
  const { protocol, hostname, port } = new URL(join);
  if (protocol === "http:") return t.skip("this machine has no network");
  const answer = await new Promise((resolve, reject) => {
    request({ hostname, port, path: "/join", signal: AbortSignal.timeout(20_000) }, resolve).on("error", reject).end();
  });
  answer.resume();
  assert.equal(answer.statusCode, 308);
  assert.match(answer.headers.location, new RegExp(`^https://${hostname}:${port}/join`));
});
