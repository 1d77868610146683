// passes: live*2
// halo: 2
struct Params { width: u32, height: u32, first_row: u32, rows: u32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

fn cell(id: vec3<u32>, dx: i32, dy: i32) -> u32 {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return state[y * params.width + x];
}

@compute @workgroup_size(8, 8)
fn live(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    var near = 0u;
    for (var dy = -1; dy <= 1; dy++) {
        for (var dx = -1; dx <= 1; dx++) {
            near += cell(id, dx, dy);
        }
    }
    let lives = cell(id, 0, 0) == 1u;
    let stays = near == 3u || (near == 4u && lives);
    next[id.y * params.width + id.x] = select(0u, 1u, stays);
}
