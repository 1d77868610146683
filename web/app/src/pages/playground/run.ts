/** Runs the kernel on the pool, step by step, with the time each step took. */

import type { Job, JobRequest, MapRequest, ResultArray, Shoal } from "@shoal/sdk";
import { npyType, ShoalError } from "@shoal/sdk";

import type { Store } from "../../core/store";
import type { Values } from "../../parts/plot";
import type { Signal } from "../../view/reactive";
import { onCleanup, signal } from "../../view/reactive";
import { inputData, paramValues } from "./fill";
import type { Settings } from "./settings";
import { inputAt, itemsOf } from "./settings";

type TileListener = (tiles: readonly number[]) => void;

export type Phase = "idle" | "sending" | "running" | "fetching" | "done" | "failed" | "stopped";

export interface Problem {
  message: string;
  /** Counted from 1, if it is about a place in the kernel. */
  line: number | null;
  stderr: string;
}

export interface Times {
  send: number;
  run: number;
  fetch: number;
}

export interface Runner {
  phase: () => Phase;
  job: () => Job | null;
  values: () => Values | null;
  times: () => Times | null;
  problem: Signal<Problem | null>;
  onTiles(listener: TileListener): void;
  start(): void;
  stop(): void;
}

export function openRunner(store: Store, settings: Settings): Runner {
  const phase = signal<Phase>("idle");
  const job = signal<Job | null>(null);
  const values = signal<Values | null>(null);
  const times = signal<Times | null>(null);
  const problem = signal<Problem | null>(null);
  const listeners = new Set<TileListener>();
  let stopper = new AbortController();

  const start = async () => {
    stopper.abort();
    stopper = new AbortController();
    const { signal } = stopper;
    job.set(null);
    values.set(null);
    times.set(null);
    problem.set(null);
    try {
      await runOnce(store, settings, runner, signal);
    } catch (error) {
      if (signal.aborted) return;
      problem.set(problemOf(error));
      phase.set("failed");
    }
  };

  const runner = {
    phase,
    job,
    values,
    times,
    problem,
    tell: (tiles: readonly number[]) => listeners.forEach((listener) => listener(tiles)),
    onTiles: (listener: TileListener) => {
      listeners.add(listener);
      onCleanup(() => listeners.delete(listener));
    },
    start: () => void start(),
    stop: () => {
      stopper.abort();
      phase.set("stopped");
    },
  };
  return runner;
}

interface Report {
  phase: Signal<Phase>;
  job: Signal<Job | null>;
  values: Signal<Values | null>;
  times: Signal<Times | null>;
  tell: TileListener;
}

async function runOnce(store: Store, settings: Settings, report: Report, signal: AbortSignal) {
  const { shoal } = store;
  const began = performance.now();
  report.phase.set("sending");
  const request = settings.picture()
    ? pictureRequest(settings)
    : await mapRequest(shoal, settings, signal);
  const submitted = await shoal.submit({ ...request, ...(await treatment(shoal, settings)) }, signal);
  const sent = performance.now();
  report.job.set(submitted);
  store.learn(submitted);
  report.phase.set("running");
  const options = { onProgress: report.job.set, onTiles: report.tell, signal };
  const ended = await shoal.wait(submitted.id, options);
  report.job.set(ended);
  const computed = performance.now();
  if (ended.kind === "map") {
    report.phase.set("fetching");
    report.values.set(toValues(ended, await shoal.result(ended.id, signal)));
  }
  const fetched = performance.now();
  report.times.set({ send: sent - began, run: computed - sent, fetch: fetched - computed });
  report.phase.set("done");
}

async function mapRequest(
  shoal: Shoal,
  settings: Settings,
  signal: AbortSignal,
): Promise<JobRequest> {
  const shape = settings.shape();
  const items = itemsOf(settings);
  const params = paramValues(shape.params, settings.params());
  const inputs = await Promise.all(
    shape.inputs.map(async (binding, index) => {
      const setting = inputAt(settings, index);
      const data = inputData(setting, binding, items);
      const stored = await shoal.upload(data, { signal });
      const split = setting.whole ? { whole: true } : { perItem: setting.perItem };
      // A file may hold other numbers than the kernel reads: the coordinator then says so.
      const type = setting.fill === "file" ? { type: npyType(data) } : {};
      return { blob: stored.hash, ...split, ...type };
    }),
  );
  const request: JobRequest & MapRequest = {
    kind: "map",
    name: settings.title(),
    wgsl: settings.source(),
    inputs,
    outPerItem: settings.outPerItem(),
    params,
  };
  if (inputs.every((input) => input.whole)) request.items = items;
  return request;
}

function pictureRequest(settings: Settings): JobRequest {
  const params = paramValues(settings.shape().params, settings.params());
  return {
    kind: "render",
    name: settings.title(),
    wgsl: settings.source(),
    params,
    ...settings.frame(),
  };
}

/** What somebody waits for goes to this browser's own tab first, if it lends. */
async function treatment(
  shoal: Shoal,
  settings: Settings,
): Promise<Pick<JobRequest, "verify" | "priority" | "home">> {
  const [verify, priority] = [settings.verify(), settings.priority()];
  const home = priority === "interactive" ? await shoal.home() : undefined;
  return home === undefined ? { verify, priority } : { verify, priority, home };
}

function toValues(job: Job, bytes: Uint8Array<ArrayBuffer>): Values {
  const data: ResultArray =
    job.output?.type === "i32"
      ? new Int32Array(bytes.buffer)
      : job.output?.type === "u32"
        ? new Uint32Array(bytes.buffer)
        : new Float32Array(bytes.buffer);
  return { data, lanes: Math.max(1, Math.round(data.length / Math.max(1, job.items))) };
}

function problemOf(error: unknown): Problem {
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof ShoalError ? error.details : {};
  const job = details["job"] as Job | undefined;
  const said = details["line"] ?? /(?:line |:)(\d+)(?::\d+)?/.exec(message)?.[1];
  const aboutKernel = error instanceof ShoalError && error.code.includes("kernel");
  return {
    message,
    line: aboutKernel && said !== undefined ? Number(said) : null,
    stderr: job?.error?.stderr ?? "",
  };
}
