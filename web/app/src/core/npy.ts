/** The .npy files of NumPy: read what a kernel can take, write what it gave. */

export type NumberArray =
  Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

export interface Npy {
  shape: number[];
  data: NumberArray;
}

const MAGIC = "\u0093NUMPY";
const TYPES = { "<f4": Float32Array, "<i4": Int32Array, "<u4": Uint32Array } as const;
const CODES: Record<string, string> = { f32: "<f4", i32: "<i4", u32: "<u4" };

export function readNpy(buffer: ArrayBuffer): Npy {
  const bytes = new Uint8Array(buffer);
  const magic = String.fromCharCode(...bytes.subarray(0, 6));
  if (magic !== MAGIC)
    throw new Error("this is not a .npy file: it does not start with the NumPy mark");
  const view = new DataView(buffer);
  const wide = (bytes[6] ?? 1) >= 2;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
  const descr = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? "unknown";
  const Type = TYPES[descr as keyof typeof TYPES];
  if (!Type) {
    throw new Error(
      `the array's dtype is ${descr}; a kernel takes float32, int32 or uint32 (little-endian)`,
    );
  }
  if (/'fortran_order':\s*True/.test(header)) {
    throw new Error("the array is in Fortran order; save it with numpy.ascontiguousarray first");
  }
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "")
    .split(",")
    .flatMap((n) => (n.trim() ? [Number(n)] : []));
  const items = shape.reduce((product, n) => product * n, 1);
  const body = buffer.slice(start + length);
  if (body.byteLength !== items * 4) {
    throw new Error(
      `the file holds ${body.byteLength} bytes of data, its shape (${shape.join(", ")}) needs ${items * 4}`,
    );
  }
  return { shape, data: new Type(body) };
}

/** What the numbers are in WGSL. */
export function scalarOf(data: NumberArray): "f32" | "i32" | "u32" {
  if (data instanceof Float32Array) return "f32";
  return data instanceof Int32Array ? "i32" : "u32";
}

/** The header that makes raw little-endian bytes a .npy file, or null if NumPy has no such type. */
export function npyHeader(type: string, shape: readonly number[]): Uint8Array<ArrayBuffer> | null {
  const code = CODES[type];
  if (!code) return null;
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  let header = `{'descr': '${code}', 'fortran_order': False, 'shape': (${dims}), }`;
  header += " ".repeat((64 - ((10 + header.length + 1) % 64)) % 64) + "\n";
  const out = new Uint8Array(10 + header.length);
  out.set([
    0x93,
    ...new TextEncoder().encode("NUMPY"),
    1,
    0,
    header.length & 255,
    header.length >> 8,
  ]);
  out.set(new TextEncoder().encode(header), 10);
  return out;
}
