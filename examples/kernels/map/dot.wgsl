// The dot product of two arrays: items multiply, `--reduce sum` adds.
//
//   shoal map examples/kernels/map/dot.wgsl signal.f32 weights.f32 --raw f32 --reduce sum

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if (i >= arrayLength(&output)) {
        return;
    }
    output[i] = a[i] * b[i];
}
