/** Where Workers come from. A page may only start Workers of its own origin, so for another site's page their code is
 * fetched first and started from memory. */

import { languageModule } from "../relaxed.js";
import type { Places } from "../workers/messages.js";

const WORKERS = ["brain-worker", "gpu-worker", "wasi-worker"] as const;

export interface Found {
  places: Places;
  brainWorker: string;
  /** Imported when a direct way to another node is wanted. */
  radio: string;
  /** Frees what was fetched. */
  release: () => void;
}

export async function findPlaces(base: string, folder = `${base}/assets`): Promise<Found> {
  const assets = new URL(folder.replace(/\/?$/, "/"), location.href);
  const isOwn = assets.origin === location.origin;
  const [brainWorker, gpuWorker, wasiWorker] = isOwn
    ? WORKERS.map((name) => `${assets.href}${name}.js`)
    : await Promise.all(WORKERS.map((name) => intoMemory(`${assets.href}${name}.js`)));
  if (!brainWorker || !gpuWorker || !wasiWorker) throw new Error("a Worker's code is missing");
  const later = (name: string) => (isOwn ? `${assets.href}${name}.js` : imported(`${assets.href}${name}.js`));
  const [onnxWorker, llmWorker, llmGpuWorker] = [later("onnx-worker"), later("llm-worker"), later("llm-gpu-worker")];
  const places = {
    base,
    brainWasm: `${assets.href}brain_bg.wasm`,
    gpuWasm: `${assets.href}gpu_bg.wasm`,
    crewModule: `${assets.href}crew.js`,
    crewWasm: `${assets.href}crew_bg.wasm`,
    onnxWasm: `${assets.href}onnx_bg.wasm`,
    llmWasm: languageModule(assets.href.replace(/\/$/, "")),
    llmGpuWasm: `${assets.href}llm-gpu_bg.wasm`,
    gpuWorker,
    wasiWorker,
    onnxWorker,
    llmWorker,
    llmGpuWorker,
    keepWorker: `${assets.href}keep-worker.js`,
  };
  const release = () => {
    const all = [brainWorker, gpuWorker, wasiWorker, onnxWorker, llmWorker, llmGpuWorker];
    if (!isOwn) for (const url of all) URL.revokeObjectURL(url);
  };
  return { places, brainWorker, radio: `${assets.href}radio.js`, release };
}

/** An address from which a Worker with this code can be started here. */
export async function startable(url: string): Promise<string> {
  return new URL(url).origin === location.origin ? url : intoMemory(url);
}

async function intoMemory(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return inMemory(await answer.text());
}

/** An address from which a Worker can be started here, with code that is fetched when it starts. */
export function importable(url: string): { url: string; release: () => void } {
  if (new URL(url).origin === location.origin) return { url, release: () => undefined };
  const own = imported(url);
  return { url: own, release: () => URL.revokeObjectURL(own) };
}

/** The same for a Worker that most tabs never start: its code is fetched when it starts. */
function imported(url: string): string {
  return inMemory(`import ${JSON.stringify(url)};`);
}

function inMemory(code: string): string {
  return URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
}
