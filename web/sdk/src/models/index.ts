/** The models of a pool: listed, and added. */

import type { ModelInfo, Service, ServiceList } from "../api/answers.js";
import { type Bytes, upload } from "../blobs.js";
import { type Http, ShoalError } from "../http.js";
import type { AddModelOptions, ModelEntry } from "./types.js";

/** What an answer may have: as much as a request. */
const ANSWER_MIB = 64;

export async function models(http: Http): Promise<ModelEntry[]> {
  const { services } = await http.json<ServiceList>("/api/v1/services");
  const found = services.filter(({ kind }) => kind === "onnx").map((service) => entryOf(http, service));
  return (await Promise.all(found)).filter((entry) => entry !== undefined);
}

/** Resolves to the model's name. */
export async function addModel(http: Http, file: Bytes, options: AddModelOptions): Promise<string> {
  const { name = stem(file), onProgress, signal, split, ...others } = options;
  const rest = split === undefined ? others : { ...others, split: String(split) };
  if (!name) throw new ShoalError(0, "bad_input", "the model has no name: pass { name }");
  const { hash } = await upload(http, file, { signal, ...(onProgress ? { onProgress } : {}) });
  await http.post("/api/v1/services", { ...rest, kind: "onnx", name, model: hash, limits: { outputMiB: ANSWER_MIB } }, signal);
  return name;
}

async function entryOf(http: Http, { name, replicas, crew, trouble }: Service): Promise<ModelEntry | undefined> {
  try {
    const { inputs, outputs, file } = await http.json<ModelInfo>(`/v2/models/${encodeURIComponent(name)}`);
    const together = crew?.ready ? crew.stages : [];
    const readyOn = [...together, ...replicas.filter(({ ready }) => ready)].map((node) => node.name);
    return { name, readyOn, ...(crew ? { split: crew } : {}), ...(trouble ? { trouble } : {}), size: file.size, inputs, outputs };
  } catch (error) {
    // Removed since.
    if (error instanceof ShoalError && error.status === 404) return undefined;
    throw error;
  }
}

function stem(file: Bytes): string {
  return file instanceof File ? file.name.replace(/\.onnx$/i, "").replace(/[^\w.-]+/g, "-") : "";
}
