// The largest element and where it is: each item gives its value and its place, and `combine` in
// peak-combine.wgsl keeps the larger one of two.
//
//   shoal map examples/kernels/map/peak.wgsl signal.f32 --raw f32 \
//     --reduce examples/kernels/map/peak-combine.wgsl

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<vec2<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = vec2<f32>(input[i], f32(i));
}
