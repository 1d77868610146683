// The moving average over 5 points: two before, the element itself, two behind.
//
//   shoal map examples/kernels/map/average.wgsl signal.f32 --raw f32 --edge mirror -o smooth.npy

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < 5u; k++) {
        sum += input[i + k - 2u];
    }
    output[i] = sum / 5.0;
}
