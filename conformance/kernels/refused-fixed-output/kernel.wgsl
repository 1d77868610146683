@group(0) @binding(0) var<storage, read_write> output: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  output[id.x] = 1.0;
}
