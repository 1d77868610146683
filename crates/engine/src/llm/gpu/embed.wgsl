// The rows of the embedding that tokens name, as numbers. A large embedding is in several buffers: each does its own.

// Slot, position and token.
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.y;
    let token = rows[row].z;
    if (token < m.first_token || token - m.first_token >= m.rows) {
        return;
    }
    for (var piece = lane; piece < m.blocks * 4u; piece += 64u) {
        let block = (token - m.first_token) * m.blocks + piece / 4u;
        let at = piece % 4u;
        let w = eight(block, at);
        let s = scales(block);
        let i = row * m.stride_out / 4u + piece / 4u * 8u + at;
        out[i] = (w.low * s.x + vec4<f32>(s.z)) * m.scale;
        out[i + 4u] = (w.high * s.y + vec4<f32>(s.z)) * m.scale;
    }
}
