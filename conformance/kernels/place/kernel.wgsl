struct Place {
  offset: u32,
  length: u32,
  total: u32,
}

@group(0) @binding(0) var<storage, read_write> output: array<vec4<u32>>;
@group(0) @binding(1) var<uniform> place: Place;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  output[i] = vec4(place.offset + i, place.offset, place.length, place.total);
}
