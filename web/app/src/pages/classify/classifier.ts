/** The page's state: the model in the pool, this tab's part in it, and what was asked last. */

import type { BlobRef, JoinHandle, JoinStatus, ModelInfo, Service, Shoal } from "@shoal/sdk";

import { memo, onCleanup, signal } from "../../view/reactive";

/** What the model is called in the pool. */
const NAME = "classifier";
export const SLICES = 3;
export const SIDE = 32;
const SHAPE = [1, 3, SIDE, SIDE];
const LOOK_MS = 500;
/** Pictures at work at a time: one for each slice, so that none has to wait. */
const AT_ONCE = 3;

export const CLASSES = [
  "airplane",
  "automobile",
  "bird",
  "cat",
  "deer",
  "dog",
  "frog",
  "horse",
  "ship",
  "truck",
] as const;

/** A device's slice, and what a picture costs there. Times in milliseconds. */
export interface Slice {
  node: number;
  name: string;
  isOwn: boolean;
  ready: boolean;
  operators: number;
  parameters: number;
  done: number;
  computes: number | undefined;
  /** Bytes that come in and go out. */
  takes: number | undefined;
  handsOn: number | undefined;
  travels: number | undefined;
  via: "direct" | "relay" | undefined;
}

export interface State {
  slices: Slice[];
  /** Who has all of it. */
  whole: string | undefined;
}

export interface Answer {
  /** For each class, adding up to 1. */
  scores: readonly number[];
  /** From asking to the answer. */
  ms: number;
  /** How many slices it went through. */
  slices: number;
}

export interface Classifier {
  lending: () => "off" | "starting" | "on";
  problem: () => string;
  isThere: () => boolean;
  /** Tabs and machines that could hold a slice. */
  tabs: () => number;
  state: () => State;
  answer: () => Answer | null;
  /** Answers so far, and those that failed. */
  counts: () => { answered: number; failed: number };
  start(): void;
  stop(): void;
  remove(): Promise<void>;
  /** The picture is dropped if too many are at work. Says whether it is asked. */
  ask(picture: Float32Array): boolean;
}

interface Known {
  service: Service;
  info: ModelInfo;
}

/** A refusal of the coordinator. */
class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export function openClassifier(shoal: Shoal): Classifier {
  const [lending, problem] = [signal<"off" | "starting" | "on">("off"), signal("")];
  const [status, known] = [signal<JoinStatus | null>(null), signal<Known | null>(null)];
  const [tabs, answer] = [signal(0), signal<Answer | null>(null)];
  const counts = signal({ answered: 0, failed: 0 });
  const state = memo(() => stateOf(known(), status()?.node));
  const closing = new AbortController();
  let handle: JoinHandle | null = null;
  let asked = 0;
  let shown = 0;
  let atWork = 0;

  const tell = (error: unknown) => problem.set(wordsOf(error));
  const look = async () => {
    const [services, nodes] = await Promise.all([shoal.services(), shoal.nodes()]);
    tabs.set(nodes.length);
    const service = services.find(({ name }) => name === NAME);
    const info = service && (known()?.info ?? (await call<ModelInfo>("GET", `/v2/models/${NAME}`)));
    known.set(service && info ? { service, info } : null);
  };
  const follow = async () => {
    while (!closing.signal.aborted) {
      await look().catch(() => undefined);
      await pause(LOOK_MS, closing.signal);
    }
  };
  const add = async () => {
    await look();
    if (known()) return;
    const file = await fetch("/assets/cifar10.onnx");
    if (!file.ok) throw new Error("the model's file is not among this coordinator's pages");
    const { hash: model }: BlobRef = await shoal.upload(new Uint8Array(await file.arrayBuffer()));
    const request = { kind: "onnx", name: NAME, model, least: 1, most: 1, split: String(SLICES), shapes: { image: SHAPE } };
    await call("POST", "/api/v1/services", request).catch(ignoreTaken);
    await look();
  };
  const start = async () => {
    lending.set("starting");
    problem.set("");
    try {
      const onStatus = (next: JoinStatus) => status.set(next);
      // Of three tabs in a window two are in the background.
      handle = await shoal.join({ own: true, together: true, gpu: false, whenHidden: "go on", onStatus });
      lending.set("on");
      void handle.stopped.then((reason) => {
        handle = null;
        status.set(null);
        lending.set("off");
        if (reason) problem.set(reason);
      });
      await add();
    } catch (error) {
      if (!handle) lending.set("off");
      tell(error);
    }
  };
  const ask = async (picture: Float32Array) => {
    const number = ++asked;
    const slices = state().slices.length;
    const began = performance.now();
    atWork += 1;
    try {
      const inputs = [{ name: "image", shape: SHAPE, datatype: "FP32", data: Array.from(picture) }];
      const { outputs } = await call<Inferred>("POST", `/v2/models/${NAME}/infer`, { inputs });
      const scores = softmax(outputs[0]?.data ?? []);
      counts.update(({ answered, failed }) => ({ answered: answered + 1, failed }));
      problem.set("");
      // An older picture's answer may come later.
      if (number < shown) return;
      shown = number;
      answer.set({ scores, ms: performance.now() - began, slices: Math.max(1, slices) });
    } catch (error) {
      counts.update(({ answered, failed }) => ({ answered, failed: failed + 1 }));
      tell(error);
    } finally {
      atWork -= 1;
    }
  };

  void follow();
  onCleanup(() => {
    closing.abort();
    handle?.stop();
  });

  return {
    lending,
    problem,
    isThere: memo(() => known() !== null),
    tabs,
    state,
    answer,
    counts,
    start: () => void start(),
    stop: () => handle?.stop(),
    remove: () => shoal.unserve(NAME).then(look).catch(tell),
    ask: (picture) => {
      if (!known() || atWork >= AT_ONCE) return false;
      void ask(picture);
      return true;
    },
  };
}

/** Another tab added it at the same moment. */
function ignoreTaken(error: unknown): void {
  if (!(error instanceof Refused) || error.status !== 409) throw error;
}

interface Inferred {
  outputs: { name: string; data: number[] }[];
}

/** Asks the coordinator with this tab's key. */
async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const key = sessionStorage.getItem("shoal.key") ?? "";
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (answer.ok) return (await answer.json()) as T;
  const { error } = (await answer.json()) as { error: string | { message: string } };
  throw new Refused(answer.status, typeof error === "string" ? error : error.message);
}

function stateOf(known: Known | null, own: number | undefined): State {
  if (!known) return { slices: [], whole: undefined };
  const { service, info } = known;
  const ready = service.replicas.find(({ ready }) => ready);
  const parts = info.parts ?? [];
  let takes: number | undefined;
  const slices = (service.crew?.stages ?? []).map((stage): Slice => {
    const held = parts.slice(stage.firstPart, stage.firstPart + stage.parts);
    const sum = (of: (part: (typeof parts)[number]) => number) => held.reduce((all, part) => all + of(part), 0);
    const slice: Slice = {
      node: stage.node,
      name: stage.name,
      isOwn: stage.node === own,
      ready: stage.ready,
      operators: sum(({ operators }) => operators),
      parameters: sum(({ parameters }) => parameters),
      done: stage.done,
      computes: stage.computeMs ?? undefined,
      takes,
      handsOn: stage.handOnBytes ?? undefined,
      travels: stage.travelMs ?? undefined,
      via: stage.via === "direct" || stage.via === "relay" ? stage.via : undefined,
    };
    takes = slice.handsOn;
    return slice;
  });
  return { slices, whole: slices.length > 0 ? undefined : ready?.name };
}

function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const all = logits.map((logit) => Math.exp(logit - most));
  const sum = all.reduce((a, b) => a + b, 0);
  return all.map((one) => one / sum);
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function pause(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
}
