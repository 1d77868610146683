// The HTTP API as any program would speak it.

import { Hopeless, until } from "./until.mjs";

/** Longer than any answer takes, also on a busy machine: a coordinator that says nothing fails the test. */
const ANSWER_MS = 120_000;

export class Api {
  constructor(url, key) {
    this.url = url;
    this.key = key;
  }

  async ask(method, path, body, headers = {}) {
    const answer = await fetch(this.url + path, {
      method,
      body,
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: { authorization: `Bearer ${this.key}`, ...headers },
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }

  async json(method, path, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return (await this.ask(method, path, text, { "content-type": "application/json" })).json();
  }

  async blob(bytes) {
    return (await (await this.ask("POST", "/api/v1/blobs", bytes)).json()).hash;
  }

  submit(request) {
    return this.json("POST", "/api/v1/jobs", request);
  }

  job(id) {
    return this.json("GET", `/api/v1/jobs/${id}`);
  }

  async nodes() {
    return (await this.json("GET", "/api/v1/nodes")).nodes;
  }

  /** One of them as it is now. */
  async node(id) {
    return (await this.nodes()).find((node) => node.id === id);
  }

  async result(id) {
    return (await this.ask("GET", `/api/v1/jobs/${id}/result`)).arrayBuffer();
  }

  /** What `shoal explain` says of `jobs/1` or `nodes/1`. */
  async explain(subject) {
    return (await this.json("GET", `/api/v1/${subject}/explain`)).lines;
  }

  /** The job once at least this share of it is done, while it still runs. */
  underWay(id, share = 0.1) {
    return until(`${share} of job ${id}`, async () => {
      const job = await this.job(id);
      if (job.state !== "running") throw new Hopeless(`job ${id} is already ${job.state}`);
      return job.itemsDone >= share * job.items && job;
    });
  }

  /** The job once it is done; any other end is an error. A software GPU of a busy machine takes minutes for what takes seconds elsewhere. */
  async done(id, seconds = 360) {
    const job = await until(`the end of job ${id}`, async () => {
      const job = await this.job(id);
      return job.state !== "running" && job;
    }, seconds);
    if (job.state !== "done") throw new Error(`job ${id} ${job.state}: ${JSON.stringify(job.error)}`);
    return job;
  }
}
