struct At {
  @builtin(global_invocation_id) id: vec3<u32>,
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
}

@group(0) @binding(0) var<storage, read_write> output: array<u32>;

fn number(at: At) -> u32 {
  return at.group.x * 100u + at.groups.x;
}

@compute @workgroup_size(32)
fn main(at: At) {
  if (at.id.x < arrayLength(&output)) {
    output[at.id.x] = number(at);
  }
}
