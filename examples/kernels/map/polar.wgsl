// Distance and angle of points, seen from a centre: two numbers in, two numbers out.
//
//   shoal map examples/kernels/map/polar.wgsl signal.f32 --raw f32 --in-per 2 --out-per 2 \
//     --param centre=0.5,0.25 -o polar.npy

struct Params {
    centre: vec2<f32>,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (2u * i >= arrayLength(&output)) {
        return;
    }
    let point = vec2<f32>(input[2u * i], input[2u * i + 1u]) - params.centre;
    output[2u * i] = length(point);
    output[2u * i + 1u] = atan2(point.y, point.x);
}
