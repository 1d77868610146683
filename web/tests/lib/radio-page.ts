/** One end of a direct way, asked by a test: the page's half, which is the one of the join page. */

import { answer } from "../../sdk/src/join/radio.js";
import type { RadioCall } from "../../sdk/src/workers/radio-words.js";

export function open(worker: string): { ask: (message: object) => Promise<object> } {
  const end = new Worker(worker, { type: "module" });
  let resolve: (seen: object) => void;
  end.addEventListener("message", ({ data }: MessageEvent<RadioCall | { type: "seen"; seen: object }>) => {
    if (data.type === "radio") answer(data);
    else resolve(data.seen);
  });
  return {
    ask: (message) =>
      new Promise((settle) => {
        resolve = settle;
        end.postMessage(message);
      }),
  };
}
