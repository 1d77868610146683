struct Params {
  scale: f32,
  count: u32,
  corner: vec2<f32>,
}

@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  output[i] = params.scale * f32(params.count) * params.corner.x;
}
