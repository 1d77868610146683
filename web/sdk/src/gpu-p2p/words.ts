/** What two connections say to each other: a line of JSON, and bytes behind it. Words of a peer are checked before
 * anything is done with them. */

import { PEER_DATA_CHANNELS, PEER_FIRST_DATA, PEER_PART_BYTES, PEER_WORDS_BYTES } from "../constants.js";
import { GPUPeerError, type GPUPeerErrorCode } from "./error.js";

export interface Said {
  features: string[];
  limits: Record<string, number>;
}

/** Which handle is meant. */
export interface Claim {
  buffer: number;
  token: string;
}

export interface Binding extends Claim {
  group: number;
  binding: number;
}

/** `id` is the asker's, and comes back with the answer. */
export type Words =
  | ({ is: "hello"; version: number } & Said)
  | { is: "say"; value: unknown }
  /** Send the newest version, if it is newer than this one. Leads to parts, or to `same`. */
  | ({ is: "read"; id: number; have: number } & Claim)
  /** Parts of a new version follow. If `onto` is not the newest by then it is refused; -1: whatever is there. */
  | ({ is: "write"; id: number; size: number; onto: number } & Claim)
  /** `toOwner`: of a write. The last one names the whole: its hash, and in answers its version. */
  | { is: "part"; id: number; toOwner: boolean; offset: number; last: boolean; version: number; hash: string }
  /** So many bytes of the parts were taken. */
  | { is: "took"; id: number; fromOwner: boolean; bytes: number }
  | { is: "same"; id: number; version: number; hash: string }
  | { is: "wrote"; id: number; version: number }
  /** Run this over the owner's buffers. */
  | { is: "run"; id: number; code: string; entryPoint: string; constants: Record<string, number>; workgroups: number[]; bindings: Binding[] }
  | { is: "ran"; id: number; versions: { buffer: number; version: number }[] }
  | { is: "failed"; id: number; code: GPUPeerErrorCode; message: string }
  /** The owner has a new version of a buffer. */
  | { is: "version"; buffer: number; version: number }
  | { is: "revoked"; buffer: number }
  | { is: "bye"; code: GPUPeerErrorCode; message: string };

type Shape = "number" | "string" | "boolean" | "list" | "numbers" | "any";

const CLAIM = { buffer: "number", token: "string" } as const;
const SHAPES: { [Is in Words["is"]]: Record<string, Shape> } = {
  hello: { version: "number", features: "list", limits: "numbers" },
  say: { value: "any" },
  read: { id: "number", have: "number", ...CLAIM },
  write: { id: "number", size: "number", onto: "number", ...CLAIM },
  part: { id: "number", toOwner: "boolean", offset: "number", last: "boolean", version: "number", hash: "string" },
  took: { id: "number", fromOwner: "boolean", bytes: "number" },
  same: { id: "number", version: "number", hash: "string" },
  wrote: { id: "number", version: "number" },
  run: { id: "number", code: "string", entryPoint: "string", constants: "numbers", workgroups: "list", bindings: "list" },
  ran: { id: "number", versions: "list" },
  failed: { id: "number", code: "string", message: "string" },
  version: { buffer: "number", version: "number" },
  revoked: { buffer: "number" },
  bye: { code: "string", message: "string" },
};
/** What lists hold. */
const ITEMS: Record<string, Record<string, Shape> | Shape> = {
  features: "string",
  workgroups: "number",
  bindings: { group: "number", binding: "number", ...CLAIM },
  versions: { buffer: "number", version: "number" },
};

export function dataChannel(buffer: number): number {
  return PEER_FIRST_DATA + (buffer % PEER_DATA_CHANNELS);
}

export function pack(words: Words, bytes?: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(JSON.stringify(words));
  if (text.byteLength > PEER_WORDS_BYTES) {
    throw new GPUPeerError("size", `the message has ${text.byteLength} bytes; at most ${PEER_WORDS_BYTES} can be sent at once`);
  }
  const packed = new Uint8Array(4 + text.byteLength + (bytes?.byteLength ?? 0));
  new DataView(packed.buffer).setUint32(0, text.byteLength, true);
  packed.set(text, 4);
  if (bytes) packed.set(bytes, 4 + text.byteLength);
  return packed;
}

export function unpack(message: Uint8Array<ArrayBuffer>): { words: Words; bytes: Uint8Array<ArrayBuffer> } {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const length = message.byteLength < 4 ? Infinity : view.getUint32(0, true);
  if (length > PEER_WORDS_BYTES || 4 + length > message.byteLength) {
    throw new GPUPeerError("protocol", `the peer sent a message of ${message.byteLength} bytes without a valid header`);
  }
  const words: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(message.subarray(4, 4 + length)));
  if (!isWords(words)) throw new GPUPeerError("protocol", "the peer sent a message that this page does not understand");
  const bytes = message.subarray(4 + length);
  // Whoever keeps parts counts them; larger ones would not be few bytes any more.
  if (bytes.byteLength > PEER_PART_BYTES) {
    throw new GPUPeerError("protocol", `the peer sent a part of ${bytes.byteLength} bytes; a part has at most ${PEER_PART_BYTES}`);
  }
  return { words, bytes };
}

function isWords(value: unknown): value is Words {
  if (!isObject(value) || typeof value.is !== "string" || !Object.hasOwn(SHAPES, value.is)) return false;
  return fits(value, SHAPES[value.is as Words["is"]]);
}

function fits(value: Record<string, unknown>, shape: Record<string, Shape>): boolean {
  return Object.entries(shape).every(([key, expected]) => {
    const found = value[key];
    if (expected === "any") return true;
    if (expected === "number") return isNumber(found);
    if (expected === "numbers") return isObject(found) && Object.values(found).every(isNumber);
    if (expected !== "list") return typeof found === expected;
    const item = ITEMS[key];
    if (!Array.isArray(found) || item === undefined) return false;
    return found.every((one) => {
      if (typeof item === "object") return isObject(one) && fits(one, item);
      return item === "number" ? isNumber(one) : typeof one === item;
    });
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whole or broken, but a number that a comparison can be made with. */
function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
