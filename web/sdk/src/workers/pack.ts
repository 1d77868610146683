/** Answers as a unit's result carries them. */

/** `[u32 length] * items`, then the bytes of all answers, little-endian. */
export function pack(answers: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const head = answers.length * 4;
  const size = answers.reduce((sum, answer) => sum + answer.byteLength, head);
  const packed = new Uint8Array(size);
  const lengths = new DataView(packed.buffer);
  let at = head;
  answers.forEach((answer, index) => {
    lengths.setUint32(index * 4, answer.byteLength, true);
    packed.set(answer, at);
    at += answer.byteLength;
  });
  return packed;
}
