/** A conversation: what was said, and an answer on its way. */

import type { ChatMessage, ChatUsage } from "@shoal/sdk";
import { ShoalError } from "@shoal/sdk";

import { bytes, count, duration } from "../../core/format";
import type { Store } from "../../core/store";
import type { Signal } from "../../view/reactive";
import { signal } from "../../view/reactive";

export interface Said {
  id: number;
  role: "user" | "assistant";
  text: string;
  /** How an answer went. */
  note: string;
}

export interface Talk {
  model: Signal<string>;
  where: Signal<"remote" | "local">;
  system: Signal<string>;
  temperature: Signal<number>;
  said: () => readonly Said[];
  busy: () => boolean;
  problem: Signal<string>;
  /** For who cannot see the answer grow: told when it is whole. */
  spoken: () => string;
  ask(text: string): void;
  stop(): void;
  reset(): void;
}

export function openTalk(store: Store): Talk {
  const said = signal<readonly Said[]>([]);
  const stopper = signal<AbortController | null>(null);
  const [model, system, temperature] = [signal(""), signal(""), signal(0.7)];
  const where = signal<"remote" | "local">("remote");
  const [problem, spoken] = [signal(""), signal("")];
  let last = 0;
  const add = (role: Said["role"], text: string): number => {
    last += 1;
    const id = last;
    said.update((all) => [...all, { id, role, text, note: "" }]);
    return id;
  };
  const change = (id: number, to: Partial<Said>) =>
    said.update((all) => all.map((one) => (one.id === id ? { ...one, ...to } : one)));

  const speak = async (text: string, stop: AbortController) => {
    problem.set("");
    const instructions: ChatMessage[] = system().trim() ? [{ role: "system", content: system().trim() }] : [];
    const before = said().map(({ role, text }) => ({ role, content: text }));
    const messages: ChatMessage[] = [...instructions, ...before, { role: "user", content: text }];
    const asked = add("user", text);
    const id = add("assistant", "");
    const onProgress = (loaded: number, total: number) => change(id, { note: `loading ${bytes(loaded)} of ${bytes(total)}` });
    let [whole, note] = ["", ""];
    const pace = openPace();
    try {
      const options = { model: model(), messages, where: where(), temperature: temperature(), signal: stop.signal, onProgress };
      for await (const part of store.shoal.chat(options)) {
        if (part.text) {
          whole += part.text;
          change(id, { text: whole, note: pace(performance.now(), part.text.length) });
        }
        if (part.finish === "length") note = "cut off: the conversation is as long as it may be";
        if (part.usage) change(id, { note: [told(part.usage), note].filter(Boolean).join(" · ") });
      }
      spoken.set(whole);
    } catch (error) {
      if (stop.signal.aborted) change(id, { note: "stopped" });
      else problem.set(error instanceof ShoalError ? error.message : String(error));
      // What was refused is not part of the conversation.
      if (!whole) said.update((all) => all.filter((one) => one.id !== id && one.id !== asked));
    } finally {
      if (stopper() === stop) stopper.set(null);
    }
  };

  return {
    model,
    where,
    system,
    temperature,
    said,
    busy: () => stopper() !== null,
    problem,
    spoken,
    ask: (text) => {
      if (stopper() !== null || !text.trim() || !model()) return;
      const stop = new AbortController();
      stopper.set(stop);
      void speak(text.trim(), stop);
    },
    stop: () => stopper()?.abort(),
    reset: () => {
      stopper()?.abort();
      said.set([]);
      problem.set("");
    },
  };
}

/** Parts that must have come before a pace is told: a few say little. */
const PACE_FROM = 8;

/** How fast an answer comes, while it does. In characters: a part may be one token or several; how many there were, the device
 * says at the end. */
export function openPace(): (now: number, length: number) => string {
  let [parts, first, letters] = [0, 0, 0];
  return (now, length) => {
    if (parts === 0) first = now;
    else letters += length;
    parts += 1;
    const took = now - first;
    return parts < PACE_FROM || took <= 0 ? "" : `about ${count((1000 * letters) / took)} characters/s`;
  };
}

/** What the device measured. */
export function told({ promptTokens, cachedTokens, promptMs, answerTokens, answerMs, answerRate }: ChatUsage): string {
  const words = [`${answerTokens} tokens`];
  if (answerRate !== undefined) words[0] += ` at ${answerRate.toFixed(1)} tokens/s`;
  const known = cachedTokens > 0 ? `, ${cachedTokens} of them read before,` : "";
  if (promptMs !== undefined) words.push(`prompt of ${promptTokens}${known} in ${duration(promptMs / 1000)}`);
  if (answerMs !== undefined) words.push(`answer in ${duration(answerMs / 1000)}`);
  return words.join(" · ");
}
