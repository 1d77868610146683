// One step of heat spreading along a ring: behind the last element comes the first.
//
//   shoal map examples/kernels/map/ring.wgsl signal.f32 --raw f32 --edge wrap --param rate=0.25 -o cooler.npy

struct Params {
    rate: f32,
}

@group(0) @binding(0) var<storage, read> heat: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    let flow = heat[i - 1u] - 2.0 * heat[i] + heat[i + 1u];
    output[i] = heat[i] + params.rate * flow;
}
