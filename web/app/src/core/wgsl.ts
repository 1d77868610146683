/**
 * Reads just enough of a WGSL kernel to offer the right fields: its inputs, its output, its parameters.
 * The coordinator has the last word; what is not understood here is simply not offered.
 */

export interface KernelShape {
  inputs: Binding[];
  output: Binding | null;
  /** Members of the parameter block that the user fills. */
  params: Param[];
  /** Whether the kernel asks for its tile's place, as only a picture's kernel does. */
  picture: boolean;
}

export interface Binding {
  name: string;
  scalar: Scalar;
  /** Scalars in one element as they lie in memory: a vec3 takes four. */
  lanes: number;
}

export interface Param {
  name: string;
  scalar: Scalar;
  lanes: number;
}

export type Scalar = "f32" | "i32" | "u32";

/** Members that Shoal fills for each unit. */
// prettier-ignore
const FILLED = new Set([
  "offset", "length", "total", "tile_x", "tile_y", "tile_width", "tile_height",
  "image_width", "image_height", "samples", "tile", "stride",
]);
const PICTURE = new Set(["tile_x", "tile_y"]);

const BINDING = /@binding\s*\(\s*(\d+)\s*\)[^;]*?var\s*<\s*([^>]*)>\s*(\w+)\s*:\s*([^;]+);/g;
const STRUCT = /struct\s+(\w+)\s*\{([^}]*)\}/g;
const MEMBER = /(\w+)\s*:\s*((?:vec\d\s*<\s*\w+\s*>)|\w+)/g;

export function kernelShape(source: string): KernelShape {
  const text = source.replace(/\/\/.*$/gm, "").replace(/\/\*[\s\S]*?\*\//g, "");
  const structs = new Map(
    [...text.matchAll(STRUCT)].map((found) => [found[1] ?? "", found[2] ?? ""]),
  );
  const shape: KernelShape = { inputs: [], output: null, params: [], picture: false };
  const found = [...text.matchAll(BINDING)].sort((a, b) => Number(a[1]) - Number(b[1]));
  for (const [, , space = "", name = "", type = ""] of found) {
    const element = /^array\s*<\s*(.+?)\s*(?:,\s*\d+\s*)?>$/s.exec(type.trim())?.[1];
    if (element === undefined) readMembers(structs.get(type.trim()) ?? "", shape);
    else if (space.includes("read_write")) shape.output = { name, ...elementOf(element, structs) };
    else shape.inputs.push({ name, ...elementOf(element, structs) });
  }
  return shape;
}

function readMembers(body: string, shape: KernelShape): void {
  for (const [, name = "", type = ""] of body.matchAll(MEMBER)) {
    if (PICTURE.has(name)) shape.picture = true;
    if (!FILLED.has(name)) shape.params.push({ name, ...vector(type) });
  }
}

function elementOf(
  type: string,
  structs: ReadonlyMap<string, string>,
): { scalar: Scalar; lanes: number } {
  const body = structs.get(type);
  if (body === undefined) {
    const one = vector(type);
    return { ...one, lanes: one.lanes === 3 ? 4 : one.lanes };
  }
  const members = [...body.matchAll(MEMBER)].map(([, , member = ""]) => vector(member));
  return {
    scalar: members[0]?.scalar ?? "f32",
    lanes: members.reduce((sum, member) => sum + member.lanes, 0),
  };
}

function vector(type: string): { scalar: Scalar; lanes: number } {
  const letters: Record<string, Scalar> = { f: "f32", i: "i32", u: "u32" };
  const [, lanes, long, short] = /^vec(\d)\s*(?:<\s*(\w+)\s*>|([fiu]))$/.exec(type) ?? [];
  const scalar = lanes === undefined ? type : (long ?? letters[short ?? "f"] ?? "f32");
  return {
    scalar: scalar === "i32" || scalar === "u32" ? scalar : "f32",
    lanes: Number(lanes ?? 1),
  };
}
