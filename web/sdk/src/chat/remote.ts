/** Language models on devices of the pool, asked through the coordinator. */

import { type Http, parseEvents, ShoalError } from "../http.js";
import type { ChatOptions, ChatPart, ChatUsage, LanguageModel } from "./types.js";

interface ModelJson {
  id: string;
  shoal: Omit<LanguageModel, "name">;
}

interface PartJson {
  choices: { delta: { content?: string }; finish_reason: "stop" | "length" | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  timings?: { prompt_ms: number; prompt_per_second: number; predicted_ms: number; predicted_per_second: number };
  error?: { code: string; message: string };
}

export async function languageModels(http: Http): Promise<LanguageModel[]> {
  const { data } = await http.json<{ data: ModelJson[] }>("/v1/models");
  return data.map(({ id, shoal }) => ({ ...shoal, name: id }));
}

export async function languageModel(http: Http, name: string): Promise<LanguageModel> {
  const { id, shoal } = await http.json<ModelJson>(`/v1/models/${encodeURIComponent(name)}`);
  return { ...shoal, name: id };
}

/** A request in the words of OpenAI's API. */
export function requestOf(options: ChatOptions): string {
  return JSON.stringify({
    model: options.model,
    messages: options.messages,
    stream: true,
    stream_options: { include_usage: true },
    temperature: options.temperature,
    top_p: options.topP,
    top_k: options.topK,
    min_p: options.minP,
    seed: options.seed,
    max_completion_tokens: options.maxTokens,
    stop: options.stop,
  });
}

export async function* chat(http: Http, options: ChatOptions): AsyncGenerator<ChatPart> {
  const body = requestOf(options);
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const call = { method: "POST", headers, body, signal: options.signal };
  const answer = await http.call("/v1/chat/completions", call);
  if (!answer.body) return;
  for await (const { data } of parseEvents(answer.body)) {
    if (data === "[DONE]") return;
    const part = JSON.parse(data) as PartJson;
    if (part.error) throw new ShoalError(502, part.error.code, part.error.message);
    yield read(part);
  }
  throw new ShoalError(0, "broken_off", "the answer broke off");
}

function read(part: PartJson): ChatPart {
  const choice = part.choices[0];
  const shown: ChatPart = { text: choice?.delta.content ?? "" };
  if (choice?.finish_reason) shown.finish = choice.finish_reason;
  if (part.usage) {
    const { prompt_tokens, completion_tokens, prompt_tokens_details } = part.usage;
    const { cached_tokens } = prompt_tokens_details;
    const usage: ChatUsage = { promptTokens: prompt_tokens, answerTokens: completion_tokens, cachedTokens: cached_tokens };
    if (part.timings) {
      const { prompt_ms, prompt_per_second, predicted_ms, predicted_per_second } = part.timings;
      [usage.promptMs, usage.promptRate] = [prompt_ms, prompt_per_second];
      [usage.answerMs, usage.answerRate] = [predicted_ms, predicted_per_second];
    }
    shown.usage = usage;
  }
  return shown;
}
