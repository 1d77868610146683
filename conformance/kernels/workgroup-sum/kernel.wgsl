@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

var<workgroup> part: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_id) local: vec3<u32>,
) {
  var mine = 0.0;
  if (id.x < arrayLength(&input)) {
    mine = input[id.x];
  }
  part[local.x] = mine;
  workgroupBarrier();
  for (var width = 32u; width > 0u; width /= 2u) {
    if (local.x < width) {
      part[local.x] += part[local.x + width];
    }
    workgroupBarrier();
  }
  if (id.x < arrayLength(&output)) {
    output[id.x] = part[0];
  }
}
