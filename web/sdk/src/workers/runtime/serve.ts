/** A Worker with nothing but onnxruntime-web in it: it is the code of others, and may end at any moment. */

import type { InferenceSession, Tensor } from "onnxruntime-web";
import { elementNamed, type Found, found, pack, type Sent } from "../../models/tensors.js";
import type { FromRuntime, Open, ToRuntime } from "./words.js";

/** As much of the package as is used. */
export type Ort = Pick<typeof import("onnxruntime-web"), "InferenceSession" | "Tensor" | "env">;

interface Loaded {
  session: InferenceSession;
  webgpu: boolean;
}

/** `providers`: what computes, the best first. */
export function serveRuntime(ort: Ort, providers: ("webgpu" | "wasm")[]): void {
  const models = new Map<number, Promise<Loaded>>();
  /** One thing at a time: the package does not take more. */
  let line: Promise<unknown> = Promise.resolve();
  const inLine = <T>(act: () => Promise<T>): Promise<T> => {
    const done = line.then(act);
    line = done.catch(() => undefined);
    return done;
  };

  function open({ glue, wasm, threads }: Open): void {
    ort.env.wasm.wasmPaths = { mjs: glue, wasm };
    ort.env.wasm.numThreads = self.crossOriginIsolated ? threads : 1;
    ort.env.logLevel = "error";
  }

  /** What the first cannot load, such as an operator that a GPU does not have, the next may. */
  async function load(file: Uint8Array): Promise<Loaded> {
    const troubles: string[] = [];
    for (const provider of providers) {
      try {
        const session = await ort.InferenceSession.create(file, { executionProviders: [provider], logSeverityLevel: 3 });
        return { session, webgpu: provider === "webgpu" };
      } catch (error) {
        troubles.push(`${provider}: ${words(error)}`);
      }
    }
    throw new Error(troubles.join("; "));
  }

  async function run(model: number, request: Uint8Array<ArrayBuffer>): Promise<{ answer: Uint8Array<ArrayBuffer>; took: number }> {
    const loaded = models.get(model);
    if (!loaded) throw new Error("this model is not loaded");
    const { session } = await loaded;
    const feeds = Object.fromEntries(found(request).map((tensor) => [tensor.name, taken(ort, tensor)]));
    const began = performance.now();
    const outputs = await session.run(feeds);
    const took = performance.now() - began;
    const tensors = await Promise.all(session.outputNames.map((name) => given(name, outputs[name])));
    return { answer: pack({ tensors, sight: { pictures: [] } }), took };
  }

  addEventListener("message", ({ data }: MessageEvent<ToRuntime>) => {
    switch (data.type) {
      case "open":
        open(data);
        break;
      case "load": {
        const { model, file } = data;
        const loading = inLine(() => load(file));
        models.set(model, loading);
        loading.then(
          ({ webgpu }) => tell({ type: "loaded", model, version: ort.env.versions.web ?? "", webgpu }),
          (error: unknown) => tell({ type: "unable", model, message: words(error) }),
        );
        break;
      }
      case "run": {
        const { id, model, request } = data;
        inLine(() => run(model, request)).then(
          ({ answer, took }) => tell({ type: "ran", id, answer, took }, [answer.buffer]),
          (error: unknown) => tell({ type: "failed", id, message: words(error) }),
        );
        break;
      }
      case "drop": {
        const loaded = models.get(data.model);
        models.delete(data.model);
        void inLine(async () => (await loaded)?.session.release()).catch(() => undefined);
        break;
      }
    }
  });
}

function tell(message: FromRuntime, transfer: Transferable[] = []): void {
  postMessage(message, { transfer });
}

/** Looked at where it lies if its numbers may begin there. */
function taken(ort: Ort, { type, shape, bytes }: Found): Tensor {
  const { array, name } = type;
  const isAligned = bytes.byteOffset % array.BYTES_PER_ELEMENT === 0;
  const own = isAligned ? bytes : bytes.slice();
  const numbers = new array(own.buffer, own.byteOffset, own.byteLength / array.BYTES_PER_ELEMENT);
  return new ort.Tensor(name as "float32", numbers as Float32Array, shape);
}

async function given(name: string, tensor: Tensor | undefined): Promise<Sent> {
  const element = tensor && elementNamed(tensor.type);
  if (!element) throw new Error(`the output "${name}" is ${tensor?.type ?? "missing"}`);
  const data = (await tensor.getData()) as ArrayBufferView<ArrayBuffer>;
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { name, datatype: element.wire, shape: [...tensor.dims], bytes };
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
