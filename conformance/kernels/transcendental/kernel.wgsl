@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  let x = input[i];
  output[i] = exp(-x) + log2(x) * tanh(x) + pow(x, 1.5) + atan2(x, 2.0) + inverseSqrt(x);
}
