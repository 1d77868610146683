/** Answers as a unit's result carries them. */

import type { Ran, Told } from "./program/run.js";

/** Set in the length of a run that failed, and in the length of its stderr if it trapped. */
const FLAG = 2 ** 31;
/** Set in the length of a run that did what it should and left more than its answer. */
const LEFT = 2 ** 30;
/** Set in the length of its stderr if it went over a limit; the exit code's place says over which. */
const LIMITED = 2 ** 30;
const LIMITS = { memory: 1, output: 2 };
/** Set in the length of its stderr if it did what it should. */
const DONE = 2 ** 29;
/** Of a run that failed: its exit code and the length of its stderr. Of one that left files: their length and that. */
const RECORD_BYTES = 8;

/** Of one run. */
export interface Answer {
  bytes: Uint8Array;
  failed?: Told;
  /** What it left beside its answer. */
  left?: Pick<Ran, "stderr" | "files">;
}

/** `[u32 length] * items`, then the bytes of all answers, little-endian. */
export function pack(answers: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return packRuns(answers.map((bytes) => ({ bytes })));
}

/** The same, and behind the answers how those runs ended that failed and what the others left, then the ends of their
 * stderr and their files. */
export function packRuns(answers: Answer[]): Uint8Array<ArrayBuffer> {
  const noted = answers.filter((answer) => flagOf(answer) > 0);
  const records = new Uint8Array(noted.length * RECORD_BYTES);
  const words = new DataView(records.buffer);
  noted.forEach((answer, index) => {
    const [first, second] = recordOf(answer);
    words.setInt32(index * RECORD_BYTES, first, true);
    words.setUint32(index * RECORD_BYTES + 4, second, true);
  });
  const lengths = new Uint8Array(answers.length * 4);
  const view = new DataView(lengths.buffer);
  answers.forEach((answer, index) => view.setUint32(index * 4, answer.bytes.byteLength + flagOf(answer), true));
  const behind = noted.flatMap(({ failed, left }) => (failed ? [failed.stderr] : left ? [left.stderr, left.files] : []));
  return joined([lengths, ...answers.map(({ bytes }) => bytes), records, ...behind]);
}

function flagOf({ failed, left }: Answer): number {
  if (failed) return FLAG;
  return left && left.stderr.byteLength + left.files.byteLength > 0 ? LEFT : 0;
}

function recordOf({ failed, left }: Answer): [number, number] {
  if (failed) {
    const { code, limit, stderr } = failed;
    const flag = limit !== undefined ? LIMITED : code === undefined ? FLAG : 0;
    return [limit !== undefined ? LIMITS[limit] : (code ?? 0), stderr.byteLength + flag];
  }
  return [left?.files.byteLength ?? 0, (left?.stderr.byteLength ?? 0) + DONE];
}

function joined(pieces: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
