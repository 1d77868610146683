// The difference between each element and the one before it.
//
//   shoal map examples/kernels/map/difference.wgsl signal.f32 --raw f32 -o steps.npy

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = input[i] - input[i - 1u];
}
