// Every number times a factor.
//
//   shoal map examples/kernels/map/scale.wgsl signal.f32 --raw f32 --param factor=2.5 -o scaled.npy

struct Params {
    factor: f32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = params.factor * input[i];
}
