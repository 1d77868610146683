@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

var<workgroup> shared_value: f32;

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_id) local: vec3<u32>,
) {
  if (id.x >= arrayLength(&input) || local.x > 40u) {
    return;
  }
  if (local.x == 0u) {
    shared_value = input[id.x];
  }
  workgroupBarrier();
  output[id.x] = shared_value;
}
