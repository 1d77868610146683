/** Small ONNX files, written by hand: a model is a message of protocol buffers. */

const FLOAT = 1;

/** `nodes`: `[operator, inputs, output]` each. `inputs`, `outputs`: dimensions by name; those that are text are open.
 * `weights`: `{dims, numbers}` by name. */
export function onnxFile({ nodes, inputs, outputs, weights = {} }) {
  const graph = [
    ...nodes.map(([operator, from, to]) => message(1, [...from.map((name) => text(1, name)), text(2, to), text(4, operator)])),
    text(2, "test"),
    ...Object.entries(weights).map(([name, { dims, numbers }]) =>
      message(5, [...dims.map((dim) => number(1, dim)), number(2, FLOAT), text(8, name), bytes(9, floats(numbers))]),
    ),
    ...Object.entries(inputs).map(([name, dims]) => value(11, name, dims)),
    ...Object.entries(outputs).map(([name, dims]) => value(12, name, dims)),
  ];
  return Buffer.concat([number(1, 8), message(8, [number(2, 17)]), message(7, graph)]);
}

export function floats(numbers) {
  return Buffer.from(Float32Array.from(numbers).buffer);
}

function value(field, name, dims) {
  const shape = dims.map((dim) => message(1, [typeof dim === "string" ? text(2, dim) : number(1, dim)]));
  return message(field, [text(1, name), message(2, [message(1, [number(1, FLOAT), message(2, shape)])])]);
}

function message(field, parts) {
  return bytes(field, Buffer.concat(parts));
}

function text(field, text) {
  return bytes(field, Buffer.from(text));
}

function bytes(field, bytes) {
  return Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);
}

function number(field, number) {
  return Buffer.concat([varint(field << 3), varint(number)]);
}

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}
