/** Answers as a unit's result carries them. */

import type { Told } from "./program/run.js";

/** Set in the length of a run that failed, and in the length of its stderr if it trapped. */
const FLAG = 2 ** 31;
/** Set in the length of its stderr if it went over a limit; the exit code's place says over which. */
const LIMITED = 2 ** 30;
const LIMITS = { memory: 1, output: 2 };
/** Of a run that failed: its exit code and the length of its stderr. */
const RECORD_BYTES = 8;

/** Of one run. */
export interface Answer {
  bytes: Uint8Array;
  failed?: Told;
}

/** `[u32 length] * items`, then the bytes of all answers, little-endian. */
export function pack(answers: Uint8Array[]): Uint8Array<ArrayBuffer> {
  return packRuns(answers.map((bytes) => ({ bytes })));
}

/** The same, and behind the answers how those runs ended that failed, then the ends of their stderr. */
export function packRuns(answers: Answer[]): Uint8Array<ArrayBuffer> {
  const failed = answers.flatMap((answer) => answer.failed ?? []);
  const records = new Uint8Array(failed.length * RECORD_BYTES);
  const ends = new DataView(records.buffer);
  failed.forEach(({ code, limit, stderr }, index) => {
    const flag = limit !== undefined ? LIMITED : code === undefined ? FLAG : 0;
    ends.setInt32(index * RECORD_BYTES, limit !== undefined ? LIMITS[limit] : (code ?? 0), true);
    ends.setUint32(index * RECORD_BYTES + 4, stderr.byteLength + flag, true);
  });
  const lengths = new Uint8Array(answers.length * 4);
  const view = new DataView(lengths.buffer);
  answers.forEach(({ bytes, failed }, index) => {
    view.setUint32(index * 4, bytes.byteLength + (failed ? FLAG : 0), true);
  });
  return joined([lengths, ...answers.map(({ bytes }) => bytes), records, ...failed.map(({ stderr }) => stderr)]);
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
