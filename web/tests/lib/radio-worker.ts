/** One end of a direct way, asked by a test: the Worker's half. Words travel between pages on a `BroadcastChannel`. */

import { Call } from "../../sdk/src/workers/radio.js";
import type { RadioCall } from "../../sdk/src/workers/radio-words.js";

interface Ask {
  do: "dial" | "listen";
  takesChannels: boolean;
  /** Words go by this name. */
  room: string;
}

let call: Call;
const seen = { ups: 0, downs: 0, frames: 0, wrong: 0, refused: 0, isHere: false };

/** Frames are numbered, and filled with what their number says. */
function frame(number: number, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size).fill(number & 0xff);
  new DataView(bytes.buffer).setUint32(0, number, true);
  return bytes;
}

function check(bytes: Uint8Array): void {
  const number = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const isRight = number === seen.frames && bytes.at(-1) === (number & 0xff);
  if (!isRight) seen.wrong++;
  seen.frames++;
}

function begin(ask: Ask): void {
  const room = new BroadcastChannel(ask.room);
  const tell = (said: RadioCall, transfer: Transferable[]) => postMessage(said, { transfer });
  call = new Call(
    tell,
    { do: ask.do, ice: [], takesChannels: ask.takesChannels },
    {
      words: (words) => room.postMessage(words),
      up: () => {
        seen.ups++;
        seen.isHere = call.isHere;
      },
      down: () => seen.downs++,
      frame: check,
    },
  );
  room.onmessage = ({ data }: MessageEvent<Uint8Array>) => call.words(data);
}

/** Sends so many, and waits where they do not leave. */
async function send(count: number, size: number): Promise<void> {
  for (let number = 0; number < count; ) {
    if (call.send(frame(number, size))) number++;
    else {
      seen.refused++;
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}

type Said =
  | ({ type: "begin" } & Ask)
  | { type: "send"; count: number; size: number }
  | { type: "hang" }
  | { type: "seen" };

addEventListener("message", ({ data }: MessageEvent<Said>) => {
  if (data.type === "begin") begin(data);
  if (data.type === "send") void send(data.count, data.size);
  if (data.type === "hang") call.hang();
  postMessage({ type: "seen", seen });
});
