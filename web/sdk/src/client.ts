/** A connection to a coordinator: submit work, follow it, fetch what came out. */

import { blake3 } from "@noble/hashes/blake3.js";

import { Answers } from "./answers.js";
import { outType, type ResultArray, typed } from "./arrays.js";
import { type Bytes, lineBytes, type Source, upload, type UploadOptions } from "./blobs.js";
import { LocalChats } from "./chat/local.js";
import { chat, languageModels } from "./chat/remote.js";
import type { ChatOptions, ChatPart, LanguageModel } from "./chat/types.js";
import { toTheEnd } from "./follow.js";
import { Http, ShoalError } from "./http.js";
import { ownIdentities } from "./join/identity.js";
import { join, type JoinHandle, type JoinOptions } from "./join/index.js";
import { JobHandle, type JobOutcome, type JobPool } from "./job.js";
import { hex, type KeyPair } from "./keyring.js";
import { addModel, models } from "./models/index.js";
import { Model } from "./models/model.js";
import type { AddModelOptions, ModelEntry, ModelOptions } from "./models/types.js";
import { prepareAll, requestInput } from "./numbers/input.js";
import { formed } from "./numbers/result.js";
import type { MapResult } from "./numbers/types.js";
import type {
  ConnectOptions,
  ExecOptions,
  MapOptions,
  RenderOptions,
  RenderRunOptions,
  RunOptions,
} from "./options.js";
import { download, patiently } from "./patience.js";
import { assemble, type Picture } from "./picture.js";
import { type ReducedNumbers, reducedOf, type ReduceOptions, told, withoutGaps } from "./reduce.js";
import { ask, type AskOptions, type ServiceOptions } from "./service.js";
import { codeHash, signCode, submitterKey } from "./sign.js";
import { type Field, fieldOf, type SimOptions } from "./sim.js";
import type {
  BlobRef,
  CommonOptions,
  ExecRequest,
  Explanation,
  FailedInput,
  FailedInputList,
  LeftByRun,
  LeftList,
  Job,
  JobList,
  JobRequest,
  KernelInfo,
  ModelInfo,
  MapRequest,
  NodeList,
  PoolInfo,
  PoolNode,
  Service,
  ServiceList,
  SignedReceipt,
  SimRequest,
  Poke,
  UnitList,
} from "./types.js";

export type * from "./chat/types.js";
export type * from "./options.js";
export type * from "./reduce.js";
export type * from "./service.js";

export interface PoolEvents {
  jobs?(changed: Job[]): void;
  nodes?(all: PoolNode[]): void;
}

export interface JobEvents {
  job?(job: Job): void;
  /** Of a render: tiles that became ready. */
  tiles?(done: number[]): void;
}

export class Shoal {
  private readonly http: Http;
  private readonly localChats: LocalChats;
  private readonly handles: JobPool = {
    look: (id) => this.http.json(`/api/v1/jobs/${id}`),
    wait: (id, run) => this.wait(id, run),
    outcome: (job, signal) => this.outcome(job, signal),
    cancel: (id) => this.cancel(id),
  };

  constructor(
    url: string,
    key: string,
    private readonly options: ConnectOptions = {},
  ) {
    this.http = new Http(trimSlash(url), key);
    this.localChats = new LocalChats(this.http);
  }

  get url(): string {
    return this.http.base;
  }

  /** All language models of the pool. */
  languageModels = (): Promise<LanguageModel[]> => languageModels(this.http);

  /** The next words of a conversation, part by part as they are said. Aborting stops the node at once. With `where: "local"`
   * the model runs in this page, and nothing of the conversation leaves the device. */
  chat = (options: ChatOptions): AsyncGenerator<ChatPart> =>
    options.where === "local" ? this.localChats.chat(options) : chat(this.http, options);

  /** Frees what a language model takes in this page. It is loaded again with the next local chat. */
  closeChat = (model: string): void => this.localChats.close(model);

  pool = (): Promise<PoolInfo> => this.http.json("/api/v1/pool");
  /** The join link as a QR code, an SVG file. Whoever sees it may join. */
  joinCode = async (): Promise<Blob> => (await this.http.call("/api/v1/join.svg")).blob();
  nodes = async (): Promise<PoolNode[]> =>
    (await this.http.json<NodeList>("/api/v1/nodes")).nodes;
  jobs = async (): Promise<Job[]> => (await this.http.json<JobList>("/api/v1/jobs")).jobs;
  /** A job by its number. `await` gives it as it is now; `wait()` waits for its end, and `result()` also fetches what it gave, in a
   * page that was loaded again as well. */
  job = (id: number): JobHandle => new JobHandle(this.handles, id);
  units = (id: number): Promise<UnitList> => this.http.json(`/api/v1/jobs/${id}/units`);
  cancel = (id: number): Promise<Job> =>
    this.http.json(`/api/v1/jobs/${id}/cancel`, { method: "POST" });
  /** Plain sentences on what happened and why: to a job, or to the unit that holds one of its items. */
  explain = (id: number, item?: number): Promise<string[]> =>
    this.lines(`/api/v1/jobs/${id}/explain${item === undefined ? "" : `?item=${item}`}`);
  explainNode = (id: number): Promise<string[]> => this.lines(`/api/v1/nodes/${id}/explain`);
  /** A record of a finished job, signed by the coordinator: who computed what and how it was checked. */
  receipt = (id: number): Promise<SignedReceipt> => this.http.json(`/api/v1/jobs/${id}/receipt`);
  /** The one-line job: a built-in matrix product. */
  submitBuiltIn = (body: {
    computeType: string;
    iterations: number;
    tensorSize: number;
  }): Promise<{ jobId: number; status: string }> => this.http.post("/submit-job", body);

  /** Aborting cancels the job too. The request itself is let through: torn off, it could leave a job nobody knows. */
  async submit(request: JobRequest, signal?: AbortSignal): Promise<Job> {
    signal?.throwIfAborted();
    try {
      const signed = await this.signed(request);
      // Sent again with the same key if its answer is lost: it makes no second job.
      const key = hex(crypto.getRandomValues(new Uint8Array(16)));
      const job = await patiently(() => this.http.post<Job>("/api/v1/jobs", signed, undefined, key), signal);
      if (signal?.aborted) await this.cancel(job.id);
      return job;
    } finally {
      // Before any other error: the caller waits for this one.
      signal?.throwIfAborted();
    }
  }

  /** The public key this connection signs code with, 64 hex digits; `null` if it does not sign. */
  async signer(): Promise<string | null> {
    const pair = await this.pair();
    return pair && hex(pair.publicKey);
  }

  /** The node of a tab of this browser that lends to this pool, if there is one. Pass it as an interactive job's `home`. */
  async home(): Promise<number | undefined> {
    const own = await ownIdentities(this.url);
    return own.length > 0 ? (await this.nodes()).find(({ identity }) => own.includes(identity))?.id : undefined;
  }

  /** Removes a finished job and its result; cancels a running one. */
  async remove(id: number): Promise<void> {
    await this.http.call(`/api/v1/jobs/${id}`, { method: "DELETE" });
  }

  /** Starts a service: a program that nodes keep ready for requests. */
  async serve({ module, ...options }: ServiceOptions): Promise<Service> {
    const work = await this.signed({ kind: "exec", module: await this.storeCode(module) });
    return this.http.post("/api/v1/services", { ...options, ...work });
  }

  services = async (): Promise<Service[]> =>
    (await this.http.json<ServiceList>("/api/v1/services")).services;

  /** Ends a service. */
  async unserve(name: string): Promise<void> {
    await this.http.call(`/api/v1/services/${encodeURIComponent(name)}`, { method: "DELETE" });
  }

  /** Asks a service: the request is the program's stdin, the answer its stdout. */
  async ask(name: string, request: Bytes | string, options?: AskOptions): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await (await ask(this.http, name, request, options)).arrayBuffer());
  }

  /** The same, with the answer as a stream. */
  async askStream(name: string, request: Bytes | string, options?: AskOptions): Promise<ReadableStream<Uint8Array>> {
    return (await ask(this.http, name, request, options)).body ?? new ReadableStream();
  }

  /** A model of the pool, to be run in this page or on a node. Nothing is loaded yet. */
  async model(name: string, options?: ModelOptions): Promise<Model> {
    const { signal } = options ?? {};
    return new Model(this.http, await this.http.json<ModelInfo>(`/v2/models/${encodeURIComponent(name)}`, { signal }), options);
  }

  /** All models of the pool. */
  models = (): Promise<ModelEntry[]> => models(this.http);

  /** Adds an ONNX file to the pool's models. Nodes load it then; a page can run it at once. */
  async addModel(file: Bytes, options: AddModelOptions = {}): Promise<Model> {
    return this.model(await addModel(this.http, file, options), options.signal ? { signal: options.signal } : {});
  }

  upload(data: Bytes, options?: UploadOptions): Promise<BlobRef> {
    return upload(this.http, data, options);
  }

  async blob(hash: string): Promise<Blob> {
    return (await this.http.call(`/api/v1/blobs/${hash}`)).blob();
  }

  /** The whole result as bytes. */
  result = (id: number, signal?: AbortSignal): Promise<Uint8Array<ArrayBuffer>> =>
    download(this.http, `/api/v1/jobs/${id}/result`, signal);

  /** A render's picture so far, as a PNG file. */
  async picture(id: number): Promise<Blob> {
    return (await this.http.call(`/api/v1/jobs/${id}/picture.png`)).blob();
  }

  tile = async (id: number, tile: number): Promise<ArrayBuffer> =>
    (await this.http.bytes(`/api/v1/jobs/${id}/tiles/${tile}`)).buffer;

  /** What a map kernel reads and writes, checked as for a job. Nothing runs. */
  checkKernel({ wgsl, entry, params }: Pick<MapOptions, "wgsl" | "entry" | "params">, signal?: AbortSignal): Promise<KernelInfo> {
    return this.http.post("/api/v1/kernels/check", { wgsl, entry, params }, signal);
  }

  /** Runs a kernel over arrays. Inputs must be what it reads; lists of numbers are converted. The result is a typed array of
   * the kernel's type, or nested lists, or comes with a shape, as the input did. */
  async map<O extends MapOptions>(options: O, run: RunOptions = {}): Promise<MapResult<O>> {
    const { out, ...rest }: MapOptions = options;
    const { signal } = run;
    // From JavaScript: the result would be blocks, which nobody means.
    if ("reduce" in rest) throw new ShoalError(0, "bad_request", "map keeps all outputs: call reduce({ …, reduce }) to combine them");
    const { request, ready, kernel } = await this.mapRequest(rest, signal);
    const job = await this.finish(await this.submit(request, signal), run);
    const flat = typed((await this.result(job.id, signal)).buffer, outType(job, out));
    return formed(flat, ready, kernel.output, job.items, rest.outPerItem ?? 1) as MapResult<O>;
  }

  /** Like `map`, but combines the outputs of all items into one number, or one for each column. */
  async reduce({ reduce, ...options }: ReduceOptions, run: RunOptions = {}): Promise<ReducedNumbers> {
    const { signal } = run;
    const { request, kernel } = await this.mapRequest(options, signal);
    const how = reduce === "mean" ? "sum" : reduce;
    let job = await this.finish(await this.submit({ ...request, reduce: how }, signal), run);
    const { items, columns, combine, copy, read } = reducedOf(job);
    for (;;) {
      const bytes = await this.result(job.id, signal);
      if (job.items === 1) return told(withoutGaps(read(bytes.buffer), kernel.output), reduce, items);
      const inputs = [{ blob: await this.store(bytes, signal), perItem: columns }];
      const next: MapRequest = { kind: "map", wgsl: copy, inputs, outPerItem: columns, reduce: { wgsl: combine } };
      job = await this.finish(await this.submit({ ...common(options), ...next }, signal), run);
    }
  }

  /** Runs a kernel over a picture's tiles. */
  async render(options: RenderOptions, run: RenderRunOptions = {}): Promise<Picture> {
    const submitted = await this.submit({ ...options, kind: "render" }, run.signal);
    return this.rendered(await this.finish(submitted, run), run.signal);
  }

  /** Runs a WASI program once for each input. */
  async exec(options: ExecOptions, run: RunOptions = {}): Promise<Answers> {
    const { module, lines, perRun, files, folder, okExit, ...rest } = options;
    const { signal } = run;
    const named = (list: readonly { name: string; data: Source }[]) =>
      Promise.all(list.map(async ({ name, data }) => ({ name, blob: await this.store(data, signal) })));
    const request: ExecRequest = { ...rest, kind: "exec", module: await this.storeCode(module, signal) };
    if (lines !== undefined) {
      request.lines = { blob: await this.store(lineBytes(lines), signal) };
      if (perRun !== undefined) request.lines.perRun = perRun;
    }
    if (okExit) request.okExit = [...okExit];
    if (files) request.files = await named(files);
    if (folder) request.folder = await named(folder);
    const job = await this.finish(await this.submit(request, signal), run);
    return this.answers(job, signal);
  }

  /** The inputs on which the program of a job failed. */
  async failures(id: number, signal?: AbortSignal): Promise<FailedInput[]> {
    const all: FailedInput[] = [];
    let from: number | null = 0;
    while (from !== null) {
      const told: FailedInputList = await this.http.json(`/api/v1/jobs/${id}/failures?from=${from}`, { signal });
      all.push(...told.failures);
      from = told.next;
    }
    return all;
  }

  /** What the runs of a job left beside their answers: files in `/out`, and the ends of their stderr. */
  async left(id: number, signal?: AbortSignal): Promise<LeftByRun[]> {
    const all: LeftByRun[] = [];
    let from: number | null = 0;
    while (from !== null) {
      const told: LeftList = await this.http.json(`/api/v1/jobs/${id}/left?from=${from}`, { signal });
      all.push(...told.left);
      from = told.next;
    }
    return all;
  }

  /** Runs a simulation to its end, on nodes that compute it together; gives the last state, row by row. */
  async sim({ first, ...rest }: SimOptions, run: RunOptions = {}): Promise<ResultArray> {
    const request: JobRequest & SimRequest = { ...rest, kind: "sim" };
    if (first !== undefined) request.first = await this.store(first, run.signal);
    const job = await this.finish(await this.submit(request, run.signal), run);
    return typed((await this.result(job.id, run.signal)).buffer, outType(job));
  }

  /** The picture of a running simulation if it is newer than `after`; nothing if none came within a few seconds, or the job ended. */
  field = (id: number, after = 0, signal?: AbortSignal): Promise<Field | undefined> =>
    fieldOf(this.http, id, after, signal);

  /** Stirs the field of a running simulation. */
  async poke(id: number, poke: Poke): Promise<void> {
    const headers = { "content-type": "application/json" };
    await this.http.call(`/api/v1/jobs/${id}/poke`, { method: "POST", headers, body: JSON.stringify(poke) });
  }

  /** Waits for the end of a job. Throws if it failed or was cancelled. */
  async wait(id: number, run: RenderRunOptions = {}): Promise<Job> {
    return this.finish(await patiently(() => this.handles.look(id), run.signal), run);
  }

  /** Changes of jobs and nodes. Resolves when the stream ends or `signal` aborts. */
  events(on: PoolEvents, signal?: AbortSignal): Promise<void> {
    return this.follow("/api/v1/events", signal, (event, data) => {
      if (event === "jobs") on.jobs?.(data as Job[]);
      if (event === "nodes") on.nodes?.(data as PoolNode[]);
    });
  }

  /** Changes of one job. Resolves when it ended. */
  jobEvents(id: number, on: JobEvents, signal?: AbortSignal): Promise<void> {
    return this.follow(`/api/v1/jobs/${id}/events`, signal, (event, data) => {
      if (event === "job") on.job?.(data as Job);
      if (event === "tiles") on.tiles?.((data as { tiles: number[] }).tiles);
    });
  }

  /** Lends this page's device to the pool; ask the person first. `own`: as one of your own devices, which also get work
   * that strangers' do not. */
  async join({ own, ...options }: Omit<JoinOptions, "url" | "token"> & { own?: boolean } = {}): Promise<JoinHandle> {
    const token = own ? this.http.key : new URL((await this.pool()).join).hash.slice(1);
    return join({ ...options, url: this.url, token });
  }

  /** Checked and uploaded. */
  private async mapRequest(options: Omit<MapOptions, "out">, signal?: AbortSignal) {
    const { input, inputs, ...rest } = options;
    const kernel = await this.checkKernel(rest, signal);
    const ready = prepareAll(options, kernel);
    const request: CommonOptions & MapRequest = { ...rest, kind: "map", inputs: [] };
    request.inputs = await Promise.all(
      ready.map(async (one) => requestInput(one, await this.store(one.source, signal))),
    );
    return { request, ready, kernel };
  }

  private async store(source: Source, signal?: AbortSignal): Promise<string> {
    if ("blob" in source) return source.blob;
    return (await upload(this.http, source, { signal })).hash;
  }

  /** What is signed is what was meant, not what somebody says has arrived. */
  private async storeCode(source: Source, signal?: AbortSignal): Promise<string> {
    if ("blob" in source) return source.blob;
    const bytes = new Uint8Array(await new Blob([source]).arrayBuffer());
    const hash = hex(blake3(bytes));
    const stored = await this.store(bytes, signal);
    if (stored === hash) return hash;
    throw new ShoalError(0, "hash_mismatch", `the program has the hash ${hash}, but ${stored} was stored`);
  }

  private async signed(request: JobRequest): Promise<JobRequest> {
    const hash = request.signature ? undefined : codeHash(request);
    const pair = hash && (await this.pair());
    return pair && hash ? { ...request, signature: await signCode(pair, hash) } : request;
  }

  /** A browser that cannot make keys still submits: the coordinator then signs. */
  private async pair(): Promise<KeyPair | null> {
    const { signer } = this.options;
    return signer === undefined ? submitterKey().catch(() => null) : signer;
  }

  private async lines(path: string): Promise<string[]> {
    return (await this.http.json<Explanation>(path)).lines;
  }

  private async follow(
    path: string,
    signal: AbortSignal | undefined,
    on: (event: string, data: unknown) => void,
  ): Promise<void> {
    try {
      for await (const { event, data } of this.http.events(path, signal)) on(event, JSON.parse(data));
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  private async answers(job: Job, signal?: AbortSignal): Promise<Answers> {
    const [bytes, ends] = await Promise.all([
      this.result(job.id, signal),
      download(this.http, `/api/v1/jobs/${job.id}/ends`, signal),
    ]);
    const failures = job.itemsFailed > 0 ? await this.failures(job.id, signal) : [];
    const left = (job.result.bytesLeft ?? 0) > 0 ? await this.left(job.id, signal) : [];
    const files = (item: number) => download(this.http, `/api/v1/jobs/${job.id}/result/items/${item}/files`);
    return new Answers(bytes, new BigUint64Array(ends.buffer), failures, left, files);
  }

  private async rendered(job: Job, signal?: AbortSignal): Promise<Picture> {
    const tiles = await this.result(job.id, signal);
    if (!job.render) throw new ShoalError(0, "not_a_render", `job ${job.id} is not a render job`);
    return assemble(job.render, tiles.buffer);
  }

  /** In the form that the job's kind has. */
  private async outcome(job: Job, signal?: AbortSignal): Promise<JobOutcome> {
    if (job.render) return this.rendered(job, signal);
    if (job.result.form === "answers") return this.answers(job, signal);
    const bytes = await this.result(job.id, signal);
    return job.output ? typed(bytes.buffer, outType(job)) : bytes;
  }

  private finish(job: Job, run: RenderRunOptions): Promise<Job> {
    return toTheEnd(this, job, run);
  }
}

/** Connects and checks the key. */
export async function connect(url: string, key: string, options?: ConnectOptions): Promise<Shoal> {
  const shoal = new Shoal(url, key, options);
  await shoal.pool();
  return shoal;
}

/** What a reduction's later jobs have in common with its first: the policy, not the code. */
function common(options: Omit<MapOptions, "out">): CommonOptions {
  const { wgsl, entry, input, inputs, items, outPerItem, edge, params, signature, unit, ...rest } = options;
  return rest;
}

function trimSlash(url: string): string {
  return new URL(url).href.replace(/\/(#.*)?$/, "");
}
