// The height of a water surface at each point of a line: four waves on top of each other.
//
//   shoal map examples/kernels/wave.wgsl points.npy -o heights.npy
//
// This is the plain shape of a map kernel: one input, one output, one invocation per element.

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

fn wave(x: f32, length: f32, height: f32, phase: f32) -> f32 {
    return height * sin(x * 6.2831853 / length + phase);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&output)) {
        return;
    }
    let x = input[id.x];
    output[id.x] = wave(x, 8.0, 1.0, 0.0)
        + wave(x, 3.1, 0.4, 1.3)
        + wave(x, 1.7, 0.2, 0.7)
        + wave(x, 0.61, 0.05, 2.9);
}
