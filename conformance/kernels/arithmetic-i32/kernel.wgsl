@group(0) @binding(0) var<storage, read> input: array<i32>;
@group(0) @binding(1) var<storage, read_write> output: array<i32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  let x = input[i];
  output[i] = x / 7 * 1000 + x % 7 * 10 + clamp(x, -5, 5) + (x >> 2u) - abs(x);
}
