// The output first, inputs behind it with a gap: inputs count in binding order.
@group(0) @binding(7) var<storage, read> right: array<f32>;
@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(3) var<storage, read> left: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  output[i] = left[i] - right[i];
}
