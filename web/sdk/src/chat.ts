/** Language models: conversations, answered part by part. */

import { type Http, parseEvents, ShoalError } from "./http.js";

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ChatOptions {
  /** The model's name. */
  model: string;
  messages: readonly ChatMessage[];
  /** How freely words are chosen: 0 for the likeliest ones, up to 2. Default: 1. */
  temperature?: number;
  topP?: number;
  topK?: number;
  minP?: number;
  /** The same seed and messages give the same answer. */
  seed?: number;
  /** Tokens of the answer at most. */
  maxTokens?: number;
  stop?: string | readonly string[];
  signal?: AbortSignal;
}

export interface ChatUsage {
  promptTokens: number;
  answerTokens: number;
  /** Tokens a second, as the node measured it, if it got to the end. */
  promptRate?: number;
  answerRate?: number;
}

/** Something of an answer. The last part has `usage`. */
export interface ChatPart {
  text: string;
  finish?: "stop" | "length";
  usage?: ChatUsage;
}

export interface LanguageModel {
  name: string;
  ready: boolean;
  title: string;
  architecture: string;
  layers: number;
  parameters: number;
  quantisation: string;
  /** Tokens of a conversation at most. */
  context: number;
  /** Bytes that a device needs for it. */
  memory: number;
  /** Whether it was made for conversations. */
  chats: boolean;
}

interface ModelsJson {
  data: { id: string; shoal: Omit<LanguageModel, "name"> }[];
}

interface PartJson {
  choices: { delta: { content?: string }; finish_reason: "stop" | "length" | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number };
  timings?: { prompt_per_second: number; predicted_per_second: number };
  error?: { code: string; message: string };
}

export async function languageModels(http: Http): Promise<LanguageModel[]> {
  const { data } = await http.json<ModelsJson>("/v1/models");
  return data.map(({ id, shoal }) => ({ ...shoal, name: id }));
}

export async function* chat(http: Http, options: ChatOptions): AsyncGenerator<ChatPart> {
  const body = JSON.stringify({
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
    shown.usage = { promptTokens: part.usage.prompt_tokens, answerTokens: part.usage.completion_tokens };
    if (part.timings) {
      shown.usage.promptRate = part.timings.prompt_per_second;
      shown.usage.answerRate = part.timings.predicted_per_second;
    }
  }
  return shown;
}
