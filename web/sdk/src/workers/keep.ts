/** The Worker that reads and writes kept pieces. Files are read and written at once, which takes a slow disk a third of a
 * second for one piece: the brain's heartbeats and the engines' units must not wait for that. */

import { Hashing } from "./hashing.js";
import { Keeper } from "./keeper.js";
import type { FromKeeper, ToKeeper } from "./messages.js";

type Asked = Exclude<ToKeeper, { type: "open" }>;

/** A blob that nobody used for so long is closed: other tabs may need it, and the donor may want it removed. */
const IDLE_MS = 2_000;

/** What somebody waits for goes first. */
const reads: Asked[] = [];
const others: Asked[] = [];
const idle = new Map<string, ReturnType<typeof setTimeout>>();
let keeper: Keeper;
let isBusy = false;

function ask(asked: Asked): void {
  (asked.type === "read" ? reads : others).push(asked);
  if (!isBusy) void work();
}

async function work(): Promise<void> {
  isBusy = true;
  for (let asked = reads.shift() ?? others.shift(); asked; asked = reads.shift() ?? others.shift()) {
    const bytes = await perform(asked).catch((error: unknown) => {
      console.warn(`pieces of blob ${asked.blob.hash}: ${String(error)}`);
      return undefined;
    });
    answer(asked, bytes);
    // A read that came meanwhile is heard of.
    if (asked.type === "put") await new Promise((resolve) => setTimeout(resolve));
  }
  isBusy = false;
}

async function perform(asked: Asked): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const { hash } = asked.blob;
  clearTimeout(idle.get(hash));
  idle.delete(hash);
  if (asked.type === "close") {
    await keeper.close(hash);
    return undefined;
  }
  const close: Asked = { type: "close", id: 0, blob: asked.blob };
  idle.set(hash, setTimeout(() => ask(close), IDLE_MS));
  if (asked.type === "read") return keeper.read(asked.blob, asked.piece);
  await keeper.put(asked.blob, asked.piece, asked.bytes, asked.hash);
  return undefined;
}

function answer({ id, blob }: Asked, bytes: Uint8Array<ArrayBuffer> | undefined): void {
  const said: FromKeeper = { id, bytes, has: keeper.has(blob) };
  postMessage(said, { transfer: bytes ? [bytes.buffer] : [] });
}

addEventListener("message", ({ data }: MessageEvent<ToKeeper>) => {
  if (data.type === "open") keeper = new Keeper(data.base, new Hashing(data.hashing));
  else ask(data);
});
