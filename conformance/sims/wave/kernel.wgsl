struct Water { height: i32, speed: i32 }
struct Params { width: u32, height: u32, first_row: u32, rows: u32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<Water>;
@group(0) @binding(2) var<storage, read_write> next: array<Water>;

fn cell(id: vec3<u32>, dx: i32, dy: i32) -> Water {
    let x = u32(i32(id.x + params.width) + dx) % params.width;
    let y = u32(clamp(i32(id.y) + dy, 0, i32(params.rows) - 1));
    return state[y * params.width + x];
}

@compute @workgroup_size(8, 8)
fn pull(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    var water = cell(id, 0, 0);
    let near = cell(id, -1, 0).height + cell(id, 1, 0).height + cell(id, 0, -1).height + cell(id, 0, 1).height;
    water.speed += (near - 4 * water.height) >> 2u;
    next[id.y * params.width + id.x] = water;
}

@compute @workgroup_size(8, 8)
fn go(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    var water = cell(id, 0, 0);
    water.height += water.speed;
    next[id.y * params.width + id.x] = water;
}
