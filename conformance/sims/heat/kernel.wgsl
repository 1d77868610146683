// passes: spread*3
// halo: 3
// params: rate=0.1
struct Params { width: u32, height: u32, first_row: u32, rows: u32, rate: f32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read_write> next: array<f32>;

fn cell(id: vec3<u32>, dx: i32, dy: i32) -> f32 {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return state[y * params.width + x];
}

@compute @workgroup_size(8, 8)
fn spread(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let here = cell(id, 0, 0);
    let near = cell(id, -1, 0) + cell(id, 1, 0) + cell(id, 0, -1) + cell(id, 0, 1);
    next[id.y * params.width + id.x] = here + params.rate * (near - 4.0 * here);
}
