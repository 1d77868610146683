struct Place {
  offset: u32,
  length: u32,
  total: u32,
}

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> place: Place;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= place.length) {
    return;
  }
  output[id.x] = input[id.x] + f32(place.offset + id.x) / f32(place.total);
}
