// A number of a table for every index: the indices are split, the table goes to every device.
//
//   shoal map examples/kernels/map/lookup.wgsl samples.u32 table.u32 --raw u32 --whole table -o colours.npy

@group(0) @binding(0) var<storage, read> index: array<u32>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = table[index[i]];
}
