// Each element as it was some places earlier; how many, another array says, and it is never more than 16.
//
//   shoal map examples/kernels/map/delay.wgsl signal.f32 delays.f32 --raw f32 --overlap signal=16 -o delayed.npy

@group(0) @binding(0) var<storage, read> signal: array<f32>;
@group(0) @binding(1) var<storage, read> delay: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = signal[i - u32(delay[i])];
}
