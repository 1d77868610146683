/** The .npy files of NumPy: numbers with a shape, read and written. */

export interface NpyArrays {
  f32: Float32Array<ArrayBuffer>;
  i32: Int32Array<ArrayBuffer>;
  u32: Uint32Array<ArrayBuffer>;
  /** No kernel has the types below; reductions give them. */
  f64: Float64Array<ArrayBuffer>;
  i64: BigInt64Array<ArrayBuffer>;
  u64: BigUint64Array<ArrayBuffer>;
}

export type NpyType = keyof NpyArrays;

/** One for each type, told apart by `type`. */
export type Npy = { [T in NpyType]: { type: T; shape: number[]; data: NpyArrays[T] } }[NpyType];

const MAGIC = "\u0093NUMPY";
const TYPES = {
  f32: { code: "<f4", array: Float32Array },
  i32: { code: "<i4", array: Int32Array },
  u32: { code: "<u4", array: Uint32Array },
  f64: { code: "<f8", array: Float64Array },
  i64: { code: "<i8", array: BigInt64Array },
  u64: { code: "<u8", array: BigUint64Array },
} as const;
const NAMES = Object.keys(TYPES) as NpyType[];

/** What a file holds. Throws, with the reason in words, if it is none or holds other things than numbers of these types. */
export function readNpy(file: ArrayBuffer): Npy {
  const { header, start } = headerOf(file);
  const descr = /'descr':\s*'([^']*)'/.exec(header)?.[1] ?? "unknown";
  const type = NAMES.find((name) => TYPES[name].code === descr);
  if (!type) {
    throw new Error(`the array's dtype is ${descr}; expected float, int or uint of 32 or 64 bits (little-endian)`);
  }
  if (/'fortran_order':\s*True/.test(header)) {
    throw new Error("the array is in Fortran order; save it with numpy.ascontiguousarray first");
  }
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "")
    .split(",")
    .flatMap((n) => (n.trim() ? [Number(n)] : []));
  const { array } = TYPES[type];
  const needed = shape.reduce((product, n) => product * n, array.BYTES_PER_ELEMENT);
  const body = file.slice(start);
  if (body.byteLength !== needed) {
    throw new Error(
      `the file holds ${body.byteLength} bytes of data, its shape (${shape.join(", ")}) needs ${needed}`,
    );
  }
  return { type, shape, data: new array(body) } as Npy;
}

function headerOf(file: ArrayBuffer): { header: string; start: number } {
  const bytes = new Uint8Array(file);
  if (String.fromCharCode(...bytes.subarray(0, 6)) !== MAGIC || bytes.length < 12) {
    throw new Error("this is not a .npy file: it does not start with the NumPy mark");
  }
  const view = new DataView(file);
  const isWide = (bytes[6] ?? 1) >= 2;
  const from = isWide ? 12 : 10;
  const start = from + (isWide ? view.getUint32(8, true) : view.getUint16(8, true));
  return { header: new TextDecoder("latin1").decode(bytes.subarray(from, start)), start };
}

/** The header that makes raw little-endian bytes a .npy file, or null if there is no such type here. */
export function npyHeader(type: string, shape: readonly number[]): Uint8Array<ArrayBuffer> | null {
  const code = NAMES.find((name) => name === type);
  if (!code) return null;
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${TYPES[code].code}', 'fortran_order': False, 'shape': (${dims}), }`;
  // With the ten bytes before and the line's end, a multiple of 64.
  const header = `${text.padEnd(64 * Math.ceil((text.length + 11) / 64) - 11)}\n`;
  const lead = [...MAGIC].map((char) => char.charCodeAt(0));
  const characters = [...header].map((char) => char.charCodeAt(0));
  return Uint8Array.from([...lead, 1, 0, header.length & 255, header.length >> 8, ...characters]);
}

/** The type of an array's numbers, as WGSL and `npyHeader` call it. */
export function npyType<T extends NpyType>(data: NpyArrays[T]): T {
  return NAMES.find((name) => data instanceof TYPES[name].array) as T;
}
