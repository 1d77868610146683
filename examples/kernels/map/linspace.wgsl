// Evenly spaced numbers from `first` to `last`: the index becomes a value.
//
//   shoal map examples/kernels/map/linspace.wgsl --items 300000 --param first=-1 --param last=1 -o points.npy

struct Params {
    first: f32,
    last: f32,
}

@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    let n = arrayLength(&output);
    if (i >= n) {
        return;
    }
    output[i] = mix(params.first, params.last, f32(i) / f32(n - 1u));
}
