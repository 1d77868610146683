/** Encodes work as the protocol does (postcard), for tests of an engine Worker without a coordinator. The shape is the one
 * serde gives as JSON. */

/** A map, a picture or a simulation: its kind's name, and its body. */
export function encodeWork(work) {
  if (work.Map) return sealed("map", mapWork(work.Map));
  if (work.Render) return sealed("render", renderWork(work.Render));
  if (work.Sim) return sealed("sim", simWork(work.Sim));
  throw new Error(`no kernel in ${Object.keys(work)}`);
}

function sealed(kind, body) {
  return new Uint8Array([...text(kind), ...varint(body.length), ...body]);
}

function mapWork({ kernel, inputs, output_bytes }) {
  const input = ({ blob, split }) => [
    ...blob.hash,
    ...varint(blob.size),
    ...(split === "Whole" ? [1] : [0, ...varint(split.PerItem.bytes), ...varint(split.PerItem.reach)]),
  ];
  // No fold.
  return [...encodeKernel(kernel), ...list(inputs, input), ...varint(output_bytes), 0];
}

function renderWork({ kernel, width, height, tile, samples, pixel }) {
  return [
    ...encodeKernel(kernel),
    ...[width, height, tile, samples].flatMap(varint),
    ["Rgba8", "Rgba32Float"].indexOf(pixel),
  ];
}

const SIM_FIELDS = ["Width", "Height", "FirstRow", "Rows", "Step", "Poke", "Brush"];

function simWork(sim) {
  const pass = ({ entry, workgroup, times }) => [...text(entry), ...[...workgroup, times].flatMap(varint)];
  const option = (value, encode) => (value === null || value === undefined ? [0] : [1, ...encode(value)]);
  const { params, state, next, picture } = sim.slots;
  return [
    ...text(sim.source),
    ...[sim.width, sim.height, sim.steps, sim.halo].flatMap(varint),
    ...list(sim.passes, pass),
    ...option(sim.init, pass),
    ...option(sim.show, pass),
    ...option(sim.first, ({ hash, size }) => [...hash, ...varint(size)]),
    sim.members,
    ...option(sim.keep_every, varint),
    sim.speculate ? 1 : 0,
    ...[sim.cell_bytes, sim.lanes].flatMap(varint),
    ...text(sim.scalar),
    ...[params, state, next].flatMap(varint),
    ...option(picture, varint),
    ...varint(sim.params.length),
    ...sim.params,
    ...list(sim.fields, ([field, at]) => [SIM_FIELDS.indexOf(field), ...varint(at)]),
    ...option(sim.reduce, (how) => [["Sum", "Min", "Max", "Mean"].indexOf(how)]),
  ];
}

const SPACES = ["Uniform", "StorageRead", "StorageReadWrite"];
const FIELDS = [
  "Offset",
  "Length",
  "Total",
  "TileX",
  "TileY",
  "TileWidth",
  "TileHeight",
  "ImageWidth",
  "ImageHeight",
  "Samples",
  "Tile",
  "Stride",
];

function encodeKernel({ source, entry, workgroup, bindings, params }) {
  const slot = (slot) => (slot.Input !== undefined ? [0, ...varint(slot.Input)] : [slot === "Output" ? 1 : 2]);
  const binding = (each) => [...varint(each.index), SPACES.indexOf(each.space), ...slot(each.slot)];
  const place = ([field, at]) => [FIELDS.indexOf(field), ...varint(at)];
  return [
    ...text(source),
    ...text(entry),
    ...workgroup.flatMap(varint),
    ...list(bindings, binding),
    ...(params
      ? [1, ...varint(params.bytes.length), ...params.bytes, ...list(params.places, place)]
      : [0]),
    // No windows.
    0,
  ];
}

export function varint(value) {
  const bytes = [];
  let left = BigInt(value);
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left > 0n ? low | 0x80 : low);
  } while (left > 0n);
  return bytes;
}

export function text(value) {
  const bytes = new TextEncoder().encode(value);
  return [...varint(bytes.length), ...bytes];
}

function list(items, encode) {
  return [...varint(items.length), ...items.flatMap(encode)];
}
