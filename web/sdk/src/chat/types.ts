/** Language models: what is asked of them, and what they say. */

export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface ChatOptions {
  /** The model's name. */
  model: string;
  messages: readonly ChatMessage[];
  /** Where the model runs. `remote`: on a device of the pool. `local`: in this page, which loads the whole model for it;
   * nothing of the conversation leaves the device. Default: `remote`. */
  where?: "remote" | "local";
  /** With `where: "local"`: what computes here. On a `gpu` some words may differ from those of other devices. A device of the pool
   * computes on what the model was added for. Default: `processor`. */
  on?: "processor" | "gpu";
  /** How freely words are chosen: 0 for the likeliest ones, up to 2. Default: 1. */
  temperature?: number;
  topP?: number;
  topK?: number;
  minP?: number;
  /** The same seed and messages give the same answer. */
  seed?: number;
  /** What is taken from the chance of tokens that were said, from -2 to 2: once, and for each time. */
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** By what the chance of tokens that were said is divided. Default: 1. */
  repeatPenalty?: number;
  /** What is added to the chance of tokens, by their numbers: -100 for never, 100 for always. */
  logitBias?: Readonly<Record<string, number>>;
  /** Each part says how likely its tokens were, and so many of the likeliest beside each: 0 to 20. */
  topLogprobs?: number;
  /** What the answer must be: a JSON object, or JSON that fits a schema. */
  responseFormat?: "text" | "json_object" | { schema: object };
  /** Tokens of the answer at most. */
  maxTokens?: number;
  stop?: string | readonly string[];
  /** Bytes of the model's file that are here, while it is loaded into this page. */
  onProgress?: (loaded: number, total: number) => void;
  signal?: AbortSignal;
}

export interface ChatUsage {
  promptTokens: number;
  answerTokens: number;
  /** Tokens of the prompt that an earlier text began with too, so that the device did not compute them again. */
  cachedTokens: number;
  /** Milliseconds for the prompt and for the answer, and tokens a second, as the device measured them. They are missing if a
   * stop text ended the answer. */
  promptMs?: number;
  answerMs?: number;
  promptRate?: number;
  answerRate?: number;
}

/** A token of an answer, and how likely it was. */
export interface TokenChance {
  token: string;
  /** The natural logarithm of its chance. */
  logprob: number;
  /** Its bytes: they may be a part of a character. */
  bytes: number[];
  /** The likeliest tokens in its place. */
  top: Omit<TokenChance, "top">[];
}

/** Something of an answer. The last part has `usage`. */
export interface ChatPart {
  text: string;
  /** Of its tokens, if they were asked for. */
  logprobs?: TokenChance[];
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
  /** The GGUF file. */
  file: { hash: string; size: number };
}
