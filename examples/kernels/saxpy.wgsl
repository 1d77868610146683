// a * x + y: two inputs and a parameter.
//
//   shoal map examples/kernels/saxpy.wgsl x.npy y.npy --param a=2.5 -o out.npy

struct Params {
    a: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&output)) {
        return;
    }
    output[id.x] = params.a * x[id.x] + y[id.x];
}
