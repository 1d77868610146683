/** Language models on devices of the pool, asked through the coordinator. */

import { type Http, parseEvents, type ServerEvent, ShoalError } from "../http.js";
import { Tries } from "../patience.js";
import type { ChatOptions, ChatPart, ChatUsage, LanguageModel, TokenChance } from "./types.js";

interface ModelJson {
  id: string;
  shoal: Omit<LanguageModel, "name">;
}

interface PartJson {
  choices: { delta: { content?: string }; logprobs?: { content: ChanceJson[] } | null; finish_reason: "stop" | "length" | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details: { cached_tokens: number } };
  timings?: { prompt_ms: number; prompt_per_second: number; predicted_ms: number; predicted_per_second: number };
  error?: { code: string; message: string };
}

interface NamedJson {
  token: string;
  logprob: number;
  bytes: number[];
}

interface ChanceJson extends NamedJson {
  top_logprobs: NamedJson[];
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
    presence_penalty: options.presencePenalty,
    frequency_penalty: options.frequencyPenalty,
    repeat_penalty: options.repeatPenalty,
    logit_bias: options.logitBias,
    logprobs: options.topLogprobs === undefined ? undefined : true,
    top_logprobs: options.topLogprobs,
    response_format: options.responseFormat && formatOf(options.responseFormat),
  });
}

function formatOf(format: NonNullable<ChatOptions["responseFormat"]>): object {
  if (typeof format === "string") return { type: format };
  return { type: "json_schema", json_schema: { name: "answer", schema: format.schema } };
}

/** Where the connection breaks, it asks again and goes on behind what was shown: with the same seed, the words are the same. */
export async function* chat(http: Http, options: ChatOptions): AsyncGenerator<ChatPart> {
  const { signal } = options;
  const body = requestOf({ ...options, seed: options.seed ?? anySeed() });
  const [tries, shown] = [new Tries(signal), new Shown()];
  for (;;) {
    let [over, wrong]: [boolean, unknown] = [false, undefined];
    const parts = once(http, body, signal);
    try {
      while (!over) {
        const next = await parts.next().catch((error: unknown) => {
          wrong = error;
          return { done: true as const, value: undefined };
        });
        over = next.done === true;
        const fresh = next.done ? undefined : shown.rest(next.value);
        if (!fresh) continue;
        tries.moved();
        yield fresh;
      }
    } finally {
      // Who stops listening stops the model.
      await parts.return(undefined).catch(() => undefined);
    }
    if (wrong === undefined) return;
    await tries.again(wrong);
    shown.again();
  }
}

async function* once(http: Http, body: string, signal?: AbortSignal): AsyncGenerator<ChatPart> {
  const headers = { "content-type": "application/json", accept: "text/event-stream" };
  const answer = await http.call("/v1/chat/completions", { method: "POST", headers, body, signal });
  for await (const { data } of events(answer, http.base, signal)) {
    if (data === "[DONE]") return;
    const part = JSON.parse(data) as PartJson;
    if (part.error) throw new ShoalError(502, part.error.code, part.error.message);
    yield read(part);
  }
  throw new ShoalError(0, "broken_off", "the answer broke off");
}

async function* events(answer: Response, base: string, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
  if (!answer.body) return;
  try {
    yield* parseEvents(answer.body);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ShoalError(0, "broken_off", `the answer broke off: the connection to ${base} broke: ${String(error)}`);
  }
}

/** For who brings none. */
function anySeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

/** What was shown of an answer that may be told more than once. */
class Shown {
  private text = "";
  private chances = 0;
  /** How much of it this try has told. */
  private told = { text: 0, chances: 0 };
  private isAgain = false;

  again(): void {
    this.told = { text: 0, chances: 0 };
    this.isAgain = true;
  }

  /** What of a part was not shown before. What was shown must be said again in the same words: an answer that is made of two
   * would be a third one. */
  rest(part: ChatPart): ChatPart | undefined {
    const known = this.text.slice(this.told.text);
    const { text } = part;
    const endsBefore = part.finish !== undefined && text.length < known.length;
    if (endsBefore || (!known.startsWith(text) && !text.startsWith(known))) {
      throw new ShoalError(0, "other_words", "the answer broke off, and what was said then was in other words");
    }
    const chances = part.logprobs ?? [];
    const fresh: ChatPart = { ...part, text: text.slice(known.length) };
    const freshChances = chances.slice(Math.max(0, this.chances - this.told.chances));
    if (part.logprobs) fresh.logprobs = freshChances;
    this.told.text += text.length;
    this.told.chances += chances.length;
    this.text += fresh.text;
    this.chances += freshChances.length;
    const isNew = fresh.text !== "" || freshChances.length > 0 || fresh.finish !== undefined || fresh.usage !== undefined;
    return isNew || !this.isAgain ? fresh : undefined;
  }
}

function read(part: PartJson): ChatPart {
  const choice = part.choices[0];
  const shown: ChatPart = { text: choice?.delta.content ?? "" };
  if (choice?.logprobs) shown.logprobs = choice.logprobs.content.map(chanceOf);
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

function chanceOf({ top_logprobs, ...own }: ChanceJson): TokenChance {
  return { ...namedOf(own), top: top_logprobs.map(namedOf) };
}

function namedOf({ token, logprob, bytes }: NamedJson): Omit<TokenChance, "top"> {
  return { token, logprob, bytes };
}
