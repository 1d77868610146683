// The mean of each row of a table with 100 columns: an item is a row.
//
//   shoal map examples/kernels/map/rows.wgsl signal.f32 --raw f32 --in-per 100 -o means.npy

const COLUMNS = 100u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= arrayLength(&output)) {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < COLUMNS; k++) {
        sum += input[row * COLUMNS + k];
    }
    output[row] = sum / f32(COLUMNS);
}
