@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

var<workgroup> tile: array<f32, 66>;

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  tile[local + 1u] = input[id.x];
  if (local == 0u) {
    tile[0] = input[id.x - 1u];
  }
  if (local == 63u) {
    tile[65] = input[id.x + 1u];
  }
  workgroupBarrier();
  if (id.x < arrayLength(&output)) {
    output[id.x] = tile[local] + tile[local + 1u] + tile[local + 2u];
  }
}
