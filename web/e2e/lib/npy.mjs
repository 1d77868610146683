// Just enough of NumPy's file format to make inputs and look at outputs.

import { readFileSync, writeFileSync } from "node:fs";

const TYPES = {
  "<f4": Float32Array,
  "<i4": Int32Array,
  "<u4": Uint32Array,
  "<f8": Float64Array,
  "<i8": BigInt64Array,
  "<u8": BigUint64Array,
};

export function saveNpy(path, array, shape = [array.length]) {
  const descr = Object.keys(TYPES).find((name) => array instanceof TYPES[name]);
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dims}), }`;
  const header = text.padEnd(64 * Math.ceil((text.length + 11) / 64) - 11) + "\n";
  const start = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  const data = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  writeFileSync(path, Buffer.concat([start, Buffer.from(header, "latin1"), data]));
}

export function loadNpy(path) {
  const file = readFileSync(path);
  const length = file.readUInt16LE(8);
  const header = file.toString("latin1", 10, 10 + length);
  const descr = header.match(/'descr':\s*'([^']+)'/)[1];
  const shape = header.match(/'shape':\s*\(([^)]*)\)/)[1].split(",").filter((n) => n.trim()).map(Number);
  const bytes = file.subarray(10 + length);
  const array = new TYPES[descr](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  return { array, shape };
}
