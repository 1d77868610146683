// A node that is no Shoal at all: a program with a key of its own that speaks the protocol and answers what it likes.

import { generateKeyPairSync, sign } from "node:crypto";

import { after } from "../../tests/lib/after.mjs";
import { until } from "./until.mjs";
import { openSocket } from "./websocket.mjs";
import { alive, done, heard, hello } from "./wire.mjs";

/** The largest answer that rides in a message. */
const INLINE_BYTES = 16 << 10;
const HEARTBEAT_MS = 400;
const JOIN = Buffer.from("shoal join 1\0");

/** Joins with the join link's token. `answer(job, {start, len})` gives the bytes of an answer, at once or later; `job` is
 * `{job, kind, name, items}`. `answered` counts what was sent. Leaves with its test. */
export async function stranger(t, pool, { name, answer, cpuSlots = 1, gpu = { slots: 1 }, class: numericClass }) {
  const node = new Stranger(pool, answer);
  after(t, () => node.leave());
  await node.join({ name, cpuSlots, gpu, class: numericClass });
  node.node = await until(`${name} to join`, async () => (await pool.api.nodes()).find((other) => other.name === name));
  return node;
}

class Stranger {
  answered = 0;
  jobs = new Map();
  leases = new Map();
  keys = generateKeyPairSync("ed25519");

  constructor(pool, answer) {
    this.pool = pool;
    this.answer = answer;
  }

  async join(caps) {
    this.caps = caps;
    this.beat = setInterval(() => {
      if (this.leases.size > 0) this.socket.send(alive([...this.leases.keys()], []));
    }, HEARTBEAT_MS);
    this.ended = new Promise((resolve) => (this.end = resolve));
    this.socket = await openSocket(`${this.pool.url}/node/socket`, {
      onMessage: (bytes) => this.hear(heard(bytes)),
      onEnd: () => this.end(),
    });
  }

  async leave() {
    clearInterval(this.beat);
    this.socket?.end();
    await this.ended;
  }

  /** The public half of its key, by which it is known. */
  get identity() {
    return this.keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  }

  hear(said) {
    switch (said.type) {
      case "Challenge": {
        const statement = Buffer.concat([JOIN, said.coordinator, said.nonce]);
        const proof = sign(null, statement, this.keys.privateKey);
        const token = new URL(this.pool.join).hash.slice(1);
        return this.socket.send(hello({ token, identity: this.identity, proof, caps: this.caps }));
      }
      case "Welcome":
        this.session = said.session;
        return;
      case "Refused":
        this.refused = said.why;
        return;
      case "Job":
        this.jobs.set(said.job, said);
        return;
      case "Lend":
        for (const lease of said.leases) void this.work(lease);
        return;
      case "Revoke":
        for (const attempt of said.attempts) this.leases.delete(attempt);
        return;
    }
  }

  async work(lease) {
    const { attempt, job } = lease;
    this.leases.set(attempt, lease);
    const bytes = await this.answer(this.jobs.get(job), lease);
    const took = 1000;
    if (bytes === undefined) return;
    const stored = bytes.length > INLINE_BYTES ? await this.store(lease, bytes) : { bytes };
    // What is revoked meanwhile is said all the same: a stranger need not listen.
    this.leases.delete(attempt);
    if (!stored) return;
    this.answered++;
    this.socket.send(done([{ attempt, took, ...stored }]));
  }

  /** `undefined` if the coordinator does not want it any more. */
  async store({ job, attempt }, body) {
    const headers = { authorization: `Bearer ${this.session}` };
    const stored = await fetch(`${this.pool.url}/node/results/${job}/${attempt}`, { method: "PUT", body, headers });
    return stored.ok ? stored.json() : undefined;
  }
}
