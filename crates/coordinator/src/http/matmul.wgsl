// One element of C = A * B, both size x size, repeated.
// A[i][k] = ((i * 7 + k * 3) % 13 - 6) / 13, B[k][j] = ((k * 5 + j * 11) % 17 - 8) / 17.

struct Params {
    offset: u32,
    length: u32,
    size: u32,
    iterations: u32,
}

@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

fn a(row: u32, column: u32) -> f32 {
    return (f32((row * 7u + column * 3u) % 13u) - 6.0) / 13.0;
}

fn b(row: u32, column: u32) -> f32 {
    return (f32((row * 5u + column * 11u) % 17u) - 8.0) / 17.0;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.length) {
        return;
    }
    let element = params.offset + id.x;
    let row = element / params.size;
    let column = element % params.size;
    let share = 1.0 / f32(params.iterations);
    var sum = 0.0;
    for (var round = 0u; round < params.iterations; round++) {
        for (var k = 0u; k < params.size; k++) {
            sum += a(row, k) * b(k, column) * share;
        }
    }
    output[id.x] = sum;
}
