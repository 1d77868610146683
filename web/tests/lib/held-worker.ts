/** What is kept of a blob, asked by a test: one Worker has it open, another looks after the first was ended. */

import { Hashing } from "../../sdk/src/workers/hashing.js";
import { Held, pieceSize } from "../../sdk/src/workers/held.js";

const MIB = 1 << 20;
const BLOB = { hash: "ab".repeat(32), size: 8 * MIB + 99 };

type Ask =
  | { do: "open"; base: string }
  | { do: "put" | "read"; piece: number }
  | { do: "close" | "sizes" }
  /** Writes what a test says, as a tab that was ended or a disk that changed it. */
  | { do: "spoil"; file: "held" | "pieces"; at: number; bytes: number[]; size?: number };

let hashing: Hashing;
let held: Held;

async function folder(): Promise<FileSystemDirectoryHandle> {
  return (await navigator.storage.getDirectory()).getDirectoryHandle("held", { create: true });
}

function bytesOf(piece: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(pieceSize(BLOB, piece)).fill(piece + 1);
}

function hashOf(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(hashing.hex(bytes).match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

async function fileOf(kind: "held" | "pieces"): Promise<FileSystemFileHandle> {
  return (await folder()).getFileHandle(`${BLOB.hash}.${BLOB.size}.${kind}`, { create: true });
}

async function answer(ask: Ask): Promise<unknown> {
  switch (ask.do) {
    case "open":
      hashing = new Hashing(await WebAssembly.compileStreaming(fetch(`${ask.base}/assets/brain_bg.wasm`)));
      held = await Held.open(await folder(), BLOB, hashing);
      return [...held.pieces].sort((a, b) => a - b);
    case "put":
      return held.put(ask.piece, bytesOf(ask.piece), hashOf(bytesOf(ask.piece)));
    case "read": {
      const bytes = held.read(ask.piece);
      if (!bytes) return "none";
      return bytes.every((byte) => byte === ask.piece + 1) ? bytes.byteLength : "wrong";
    }
    case "close":
      return held.close();
    case "sizes":
      return Promise.all((["held", "pieces"] as const).map(async (kind) => (await (await fileOf(kind)).getFile()).size));
    case "spoil": {
      const file = await (await fileOf(ask.file)).createSyncAccessHandle();
      file.write(Uint8Array.from(ask.bytes), { at: ask.at });
      if (ask.size !== undefined) file.truncate(ask.size);
      return file.close();
    }
  }
}

addEventListener("message", ({ data }: MessageEvent<Ask>) => {
  answer(data).then(
    (is) => postMessage({ is }),
    (error: unknown) => postMessage({ error: String(error) }),
  );
});
