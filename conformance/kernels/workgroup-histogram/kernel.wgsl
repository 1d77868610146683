@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

var<workgroup> bins: array<atomic<u32>, 8>;

@compute @workgroup_size(64)
fn main(
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  if (id.x < arrayLength(&input)) {
    atomicAdd(&bins[input[id.x] % 8u], 1u);
  }
  workgroupBarrier();
  if (id.x < arrayLength(&output)) {
    output[id.x] = atomicLoad(&bins[local % 8u]);
  }
}
