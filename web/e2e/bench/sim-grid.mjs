// Measures `bench sim-grid`: the fluid on the nodes that are there, how fast it goes, and how long its members wait.
//
//   node sim-grid.mjs URL KEY MEMBERS WIDTH HEIGHT SECONDS PID...
//
// Prints one JSON object: steps a second between two reports of progress, the share of its members' time that is spent waiting
// for halos in between, steps by a second of the processor time of these processes and their children, and the way their links go.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Api } from "../lib/api.mjs";
import { KERNELS } from "../lib/places.mjs";
import { Hopeless, until } from "../lib/until.mjs";

/** More than any machine does meanwhile: the job is cancelled, not awaited. */
const STEPS = 1_000_000;
/** Pipelines are built and the first halos have come; links have had this long to become direct. */
const WARM_STEPS = 20;
const WARM_SECONDS = 5;

const [url, key, ...rest] = process.argv.slice(2);
const [members, width, height, seconds, ...pids] = rest.map(Number);
const api = new Api(url, key);
const source = readFileSync(join(KERNELS, "fluid.wgsl"), "utf8");
const ask = { kind: "sim", name: "fluid", source, width, height, steps: STEPS, members, keepEvery: 0 };
const { id } = await api.submit(ask);
const begun = performance.now();
await until("the first steps", async () => (await running()).sim.step >= WARM_STEPS, 120);
await until("warm links", () => performance.now() - begun > WARM_SECONDS * 1000, 60);
const from = await moment();
await until("the time", () => performance.now() - from.at > seconds * 1000, 600);
const to = await moment();
await api.json("POST", `/api/v1/jobs/${id}/cancel`);
console.log(JSON.stringify({
  perSecond: (to.step - from.step) / ((to.at - from.at) / 1000),
  perCpuSecond: (to.step - from.step) / (to.cpu - from.cpu),
  waited: (to.waited - from.waited) / (to.waited + to.computed - from.waited - from.computed),
  rows: to.rows,
  via: to.via,
}));

/** The very moment in which all members have reported anew. */
async function moment() {
  const before = await running();
  return until("news of all members", async () => {
    const { sim } = await running();
    const at = performance.now();
    const { epoch, members } = sim.crew;
    if (epoch !== before.sim.crew.epoch) throw new Hopeless("the crew was called anew");
    const old = before.sim.crew.members;
    if (!members.every((member, rank) => member.step > old[rank].step)) return undefined;
    const sum = (what) => members.reduce((all, member) => all + member[what], 0);
    const via = [...new Set(members.flatMap(({ links }) => links.map((link) => link.via)))];
    // Nobody is more than a few steps ahead of another, so the mean is as good as the slowest and less coarse.
    const step = sum("step") / members.length;
    const cpu = pids.reduce((all, pid) => all + cpuSeconds(pid), 0);
    return { at, step, cpu, computed: sum("computedMs"), waited: sum("waitedMs"), rows: members.map(({ rows }) => rows[1]), via };
  }, 120);
}

async function running() {
  const job = await api.job(id);
  if (job.state !== "running") throw new Hopeless(`job ${id} is ${job.state}: ${JSON.stringify(job.error)}`);
  return job;
}

/** Of a process and its children. */
function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name in brackets may hold blanks; user and system time are the 12th and 13th after it, in hundredths.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const threads = readdirSync(`/proc/${pid}/task`);
  const children = threads.flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").match(/\d+/g) ?? []);
  return children.reduce((all, child) => all + cpuSeconds(child), (Number(fields[11]) + Number(fields[12])) / 100);
}
