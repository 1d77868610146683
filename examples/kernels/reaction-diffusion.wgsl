// Two chemicals that spread and react, after Gray and Scott: spots grow, divide and settle into patterns.
//
//   shoal sim examples/kernels/reaction-diffusion.wgsl --grid 512x512 --steps 20000
//   shoal sim examples/kernels/reaction-diffusion.wgsl --grid 512x512 --steps 20000 --param feed=0.029 --param kill=0.057
//
// This is the plain shape of a simulation: `state` is what was, `next` what will be, one invocation for each cell. The
// grid wraps around. A member of the crew has a band of rows, with rows of its neighbours above and below it.
//
// One pass makes a short step in time and looks one row up and down. Eight make one step of the simulation, so that
// the members talk to each other only every eighth time; then they need eight rows of each other.
//
// passes: react*8
// halo: 8
// params: feed=0.037, kill=0.06

struct Params {
    width: u32,
    height: u32,
    first_row: u32,     // of the grid, for this buffer's first one
    rows: u32,          // in this buffer
    poke: vec4<f32>,    // a stroke: from x, y, by so much
    brush: vec2<f32>,   // its radius, 0 if there is none, and strength
    feed: f32,
    kill: f32,
}

// x is the food, y what eats it.
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

const SPREAD = vec2<f32>(1.0, 0.5);

// The cell at some distance. Columns wrap around; rows end with the buffer.
fn cell(id: vec3<u32>, dx: i32, dy: i32) -> vec2<f32> {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return state[y * params.width + x];
}

fn grid_row(id: vec3<u32>) -> u32 {
    return (params.first_row + id.y) % params.height;
}

@compute @workgroup_size(8, 8)
fn react(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let here = cell(id, 0, 0);
    let sides = cell(id, -1, 0) + cell(id, 1, 0) + cell(id, 0, -1) + cell(id, 0, 1);
    let corners = cell(id, -1, -1) + cell(id, 1, -1) + cell(id, -1, 1) + cell(id, 1, 1);
    let spread = SPREAD * (rounded(0.2 * sides) + rounded(0.05 * corners) - here);
    let eaten = rounded(vec2<f32>(-1.0, 1.0) * (here.x * here.y * here.y));
    let fed = rounded(vec2<f32>(params.feed, params.kill + params.feed) * vec2<f32>(1.0 - here.x, -here.y));
    var after = here + (spread + eaten + fed);
    // Next to nothing is nothing: not every device keeps the very smallest numbers.
    after.y = select(after.y, 0.0, after.y < 1.0e-12);
    after.y = max(after.y, brushed(id));
    next[id.y * params.width + id.x] = after;
}

// A product, rounded before something is added. Without this a device may do both at once, which gives other last
// bits: sums and products on their own are the same on every device, so a crew may be of all kinds.
fn rounded(product: vec2<f32>) -> vec2<f32> {
    return clamp(product, vec2<f32>(-1.0e30), vec2<f32>(1.0e30));
}

// What a stroke leaves behind: eaters in a disc around its start.
fn brushed(id: vec3<u32>) -> f32 {
    let x = shortest(f32(id.x) - params.poke.x, f32(params.width));
    let y = shortest(f32(grid_row(id)) - params.poke.y, f32(params.height));
    let square = rounded(vec2<f32>(x * x, y * y));
    return select(0.0, 0.5, square.x + square.y < params.brush.x * params.brush.x);
}

// The shorter way around.
fn shortest(way: f32, around: f32) -> f32 {
    if (way > 0.5 * around) {
        return way - around;
    }
    return select(way, way + around, way < -0.5 * around);
}

// Food everywhere, eaters in some squares of 8 by 8.
@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let row = grid_row(id);
    let is_seed = hash((row / 8u) * 7919u + id.x / 8u) % 48u == 0u;
    next[id.y * params.width + id.x] = select(vec2<f32>(1.0, 0.0), vec2<f32>(0.5, 0.4), is_seed);
}

fn hash(number: u32) -> u32 {
    var h = number * 747796405u + 2891336453u;
    h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u;
    return (h >> 22u) ^ h;
}

// Coral on paper, lit from the upper left as if it had a height.
@compute @workgroup_size(8, 8)
fn show(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let height = smoothstep(0.05, 0.38, cell(id, 0, 0).y);
    let slope = vec2<f32>(cell(id, 1, 0).y - cell(id, -1, 0).y, cell(id, 0, 1).y - cell(id, 0, -1).y);
    let light = dot(slope, vec2<f32>(-0.8, -1.1));
    let paper = vec3<f32>(0.965, 0.945, 0.90);
    let shallow = vec3<f32>(0.98, 0.72, 0.55);
    let deep = vec3<f32>(0.80, 0.24, 0.30);
    var colour = mix(mix(paper, shallow, smoothstep(0.0, 0.6, height)), deep, smoothstep(0.45, 1.0, height));
    colour += light * 0.9;
    picture[id.y * params.width + id.x] = pack4x8unorm(vec4<f32>(saturate(colour), 1.0));
}
