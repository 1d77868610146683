// halo: 1
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32, poke: vec4<f32>, brush: vec2<f32> }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

fn cell(id: vec3<u32>, dx: i32, dy: i32) -> u32 {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return state[y * params.width + x];
}

@compute @workgroup_size(8, 8)
fn count(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let row = (params.first_row + id.y) % params.height;
    var here = cell(id, 0, 1) * 3u + row + params.step * 1000u;
    let way = vec2<f32>(f32(id.x), f32(row)) - params.poke.xy;
    if (dot(way, way) < params.brush.x * params.brush.x) {
        here += u32(params.poke.z + params.poke.w * 10.0 + params.brush.y * 100.0);
    }
    next[id.y * params.width + id.x] = here;
}

@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let row = (params.first_row + id.y) % params.height;
    next[id.y * params.width + id.x] = row * params.width + id.x;
}
