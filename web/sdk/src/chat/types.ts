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
  /** The GGUF file. */
  file: { hash: string; size: number };
}
