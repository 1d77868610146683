// A fluid with two inks in it. Coral rises, indigo sinks, both are fed at some places and fade away slowly; whoever
// looks at it may stir.
//
//   shoal sim examples/kernels/fluid.wgsl --grid 512x512 --steps 5000
//
// Incompressible and two-dimensional, after Stam: `advect` carries everything along with the flow, then the part of
// the flow that would squeeze the fluid is taken away: `diverge` measures it, `jacobi` finds, better with each run, the
// pressure that answers it, `project` lets the pressure push. The grid wraps around.
//
// How far do the passes of one step look? `advect` 4 rows (3 by its speed limit, 1 to blend), `diverge` 1, `jacobi` 1
// each time, `project` 1: together 4 + 1 + 10 + 1.
//
// passes: advect, diverge, jacobi*10, project
// halo: 16
// params: lift=0.018, fade=0.998
//
// Only + - * and floor are used on the way from one state to the next, and a product is `rounded` before something is
// added to it. These are the same bits on every device, so a crew may be of all kinds.

struct Params {
    width: u32,
    height: u32,
    first_row: u32,     // of the grid, for this buffer's first one
    rows: u32,          // in this buffer
    poke: vec4<f32>,    // a stroke: from x, y, by so much
    brush: vec2<f32>,   // its radius, 0 if there is none, and strength
    lift: f32,          // how strongly the inks rise and sink
    fade: f32,          // what is left of the inks after a step
}

struct Cell {
    velocity: vec2<f32>,    // in cells per step
    ink: vec2<f32>,         // coral, indigo
    pressure: f32,
    divergence: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<Cell>;
@group(0) @binding(2) var<storage, read_write> next: array<Cell>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

const SPEED_LIMIT = 3.0;
// Places where ink is fed, one in each tile of about so many cells.
const TILE = 80u;
// How far a spring and a vortex reach, as 1 / (radius * radius): multiplying by a power of two is exact.
const SPOT = 1.0 / 64.0;
const VORTEX = 1.0 / 1024.0;

// Where the cell at some distance is stored. Columns wrap around; rows end with the buffer.
fn place(id: vec3<u32>, dx: i32, dy: i32) -> u32 {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return y * params.width + x;
}

fn is_outside(id: vec3<u32>) -> bool {
    return id.x >= params.width || id.y >= params.rows;
}

// The place in the whole grid.
fn position(id: vec3<u32>) -> vec2<u32> {
    return vec2<u32>(id.x, (params.first_row + id.y) % params.height);
}

@compute @workgroup_size(8, 8)
fn advect(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    // What is here now was upstream one step ago, between four cells. The distance is computed on its own, not as a
    // difference of places, so that it has the same bits whatever the cell's number in this buffer is.
    var cell = state[place(id, 0, 0)];
    let way = clamp(-cell.velocity, vec2<f32>(-SPEED_LIMIT), vec2<f32>(SPEED_LIMIT));
    let corner = floor(way);
    let at = vec2<i32>(corner);
    let part = kept(way - corner);
    let a = state[place(id, at.x, at.y)];
    let b = state[place(id, at.x + 1, at.y)];
    let c = state[place(id, at.x, at.y + 1)];
    let d = state[place(id, at.x + 1, at.y + 1)];
    let velocity = blend(blend(a.velocity, b.velocity, part.x), blend(c.velocity, d.velocity, part.x), part.y);
    let ink = blend(blend(a.ink, b.ink, part.x), blend(c.ink, d.ink, part.x), part.y);

    let here = position(id);
    cell.ink = kept(rounded(ink * params.fade) + fed(here));
    let lift = vec2<f32>(0.0, (cell.ink.y - cell.ink.x) * params.lift);
    cell.velocity = kept(rounded(velocity * 0.9995) + rounded(lift) + stirred(here));
    next[place(id, 0, 0)] = cell;
}

fn blend(a: vec2<f32>, b: vec2<f32>, part: f32) -> vec2<f32> {
    return a + rounded((b - a) * part);
}

// A product on its own: a device may otherwise do it and a sum at once, which gives other last bits.
fn rounded(product: vec2<f32>) -> vec2<f32> {
    return clamp(product, vec2<f32>(-1.0e30), vec2<f32>(1.0e30));
}

// Next to nothing is nothing: not every device keeps the very smallest numbers.
fn kept(value: vec2<f32>) -> vec2<f32> {
    return select(value, vec2<f32>(0.0), abs(value) < vec2<f32>(1.0e-12));
}

// Each tile of the grid has a spring of one ink.
fn fed(here: vec2<u32>) -> vec2<f32> {
    let spring = spring_near(here);
    let near = bump(spring.way, SPOT);
    return rounded(select(vec2<f32>(0.0, near), vec2<f32>(near, 0.0), spring.is_coral) * 0.05);
}

fn stirred(here: vec2<u32>) -> vec2<f32> {
    if (params.brush.x <= 0.0) {
        return vec2<f32>(0.0);
    }
    let way = vec2<f32>(
        shortest(f32(here.x) - params.poke.x, f32(params.width)),
        shortest(f32(here.y) - params.poke.y, f32(params.height)),
    );
    // The next power of two.
    var reach = 1.0;
    while (reach * params.brush.x * params.brush.x > 1.0) {
        reach *= 0.5;
    }
    return rounded(params.poke.zw * (bump(way, reach) * params.brush.y));
}

// 1 in the middle, 0 at a radius and beyond, smooth in between.
fn bump(way: vec2<f32>, reach: f32) -> f32 {
    let square = rounded(way * way);
    let inside = max(1.0 - (square.x + square.y) * reach, 0.0);
    return inside * inside;
}

// The shorter way around.
fn shortest(way: f32, around: f32) -> f32 {
    if (way > 0.5 * around) {
        return way - around;
    }
    return select(way, way + around, way < -0.5 * around);
}

@compute @workgroup_size(8, 8)
fn diverge(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    var cell = state[place(id, 0, 0)];
    let across = state[place(id, 1, 0)].velocity.x - state[place(id, -1, 0)].velocity.x;
    let along = state[place(id, 0, 1)].velocity.y - state[place(id, 0, -1)].velocity.y;
    cell.divergence = kept(vec2<f32>(0.5 * (across + along))).x;
    next[place(id, 0, 0)] = cell;
}

// Starts from the last step's pressure, so that few runs are enough.
@compute @workgroup_size(8, 8)
fn jacobi(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    var cell = state[place(id, 0, 0)];
    let across = state[place(id, 1, 0)].pressure + state[place(id, -1, 0)].pressure;
    let along = state[place(id, 0, 1)].pressure + state[place(id, 0, -1)].pressure;
    cell.pressure = kept(vec2<f32>(0.25 * (across + along - cell.divergence))).x;
    next[place(id, 0, 0)] = cell;
}

@compute @workgroup_size(8, 8)
fn project(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    var cell = state[place(id, 0, 0)];
    let across = state[place(id, 1, 0)].pressure - state[place(id, -1, 0)].pressure;
    let along = state[place(id, 0, 1)].pressure - state[place(id, 0, -1)].pressure;
    cell.velocity = kept(cell.velocity - 0.5 * vec2<f32>(across, along));
    next[place(id, 0, 0)] = cell;
}

struct Spring {
    way: vec2<f32>,     // from it to here
    is_coral: bool,
}

// The spring of the tile a place is in. Tiles fill the grid evenly; in whole numbers, which all devices agree on.
fn spring_near(here: vec2<u32>) -> Spring {
    let size = vec2<u32>(params.width, params.height);
    let tiles = max(size / TILE, vec2<u32>(1u));
    let tile = min(here * tiles / size, tiles - 1u);
    let first = tile * size / tiles;
    let room = size / tiles;
    let number = tile.y * tiles.x + tile.x;
    let middle = first + room / 4u + vec2<u32>(hash(number), hash(number + 4096u)) % max(room / 2u, vec2<u32>(1u));
    return Spring(vec2<f32>(here) - vec2<f32>(middle), (tile.x + tile.y) % 2u == 0u);
}

fn hash(number: u32) -> u32 {
    var h = number * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    return (h >> 22u) ^ h;
}

// A vortex and a drop of ink around each spring.
@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    let spring = spring_near(position(id));
    let drop = bump(spring.way, VORTEX);
    let turn = select(-1.0, 1.0, spring.is_coral) * drop * 0.08;
    var cell: Cell;
    cell.velocity = vec2<f32>(-spring.way.y, spring.way.x) * turn;
    cell.ink = select(vec2<f32>(0.0, drop), vec2<f32>(drop, 0.0), spring.is_coral);
    next[place(id, 0, 0)] = cell;
}

// Inks on paper: each takes away some of the light that falls through it. Thick ink casts a little shadow.
@compute @workgroup_size(8, 8)
fn show(@builtin(global_invocation_id) id: vec3<u32>) {
    if (is_outside(id)) {
        return;
    }
    let ink = state[place(id, 0, 0)].ink;
    let left = state[place(id, -1, 0)].ink;
    let above = state[place(id, 0, -1)].ink;
    let relief = (ink.x + ink.y) * 2.0 - left.x - left.y - above.x - above.y;
    let paper = vec3<f32>(0.975, 0.955, 0.915);
    let taken = ink.x * vec3<f32>(0.06, 0.95, 1.05) + ink.y * vec3<f32>(1.75, 1.05, 0.32);
    let colour = paper * exp(-1.5 * taken) - 0.35 * clamp(relief, -0.3, 0.3);
    picture[id.y * params.width + id.x] = pack4x8unorm(vec4<f32>(saturate(colour), 1.0));
}
