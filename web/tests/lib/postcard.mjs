/** Encodes kernels as the protocol does, for tests of an engine Worker without a coordinator. */

function varint(value) {
  const bytes = [];
  let left = BigInt(value);
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left > 0n ? low | 0x80 : low);
  } while (left > 0n);
  return bytes;
}

function text(value) {
  const bytes = new TextEncoder().encode(value);
  return [...varint(bytes.length), ...bytes];
}

function list(items, encode) {
  return [...varint(items.length), ...items.flatMap(encode)];
}

const SPACES = ["uniform", "read", "read_write"];
const MAP = 1;

/** `bindings`: `{index, space, input?, params?}`; neither means the output. */
function kernel({ wgsl, entry = "main", workgroup, bindings }) {
  return [
    ...text(wgsl),
    ...text(entry),
    ...workgroup.flatMap(varint),
    ...list(bindings, ({ index, space, input, params }) => [
      ...varint(index),
      SPACES.indexOf(space),
      ...(input !== undefined ? [0, ...varint(input)] : [params ? 2 : 1]),
    ]),
    0, // no parameters
  ];
}

/** A `Work::Map`; `inputs`: `{hash, size, perItem?}`. */
export function mapWork({ inputs, outputBytes, ...rest }) {
  return new Uint8Array([
    MAP,
    ...kernel(rest),
    ...list(inputs, ({ hash, size, perItem }) => [
      ...Buffer.from(hash, "hex"),
      ...varint(size),
      ...(perItem === undefined ? [1] : [0, ...varint(perItem)]),
    ]),
    ...varint(outputBytes),
  ]);
}
