struct Params {
  one: f32,
  two: vec2<f32>,
  three: vec3<f32>,
  flag: u32,
  turn: mat3x3<f32>,
  steps: array<vec4<i32>, 2>,
  _pad: vec2<u32>,
  last: i32,
}

@group(0) @binding(0) var<storage, read_write> output: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let turned = p.turn * p.three;
  let all = array<f32, 10>(
    p.one, p.two.x, p.two.y, p.three.z, f32(p.flag),
    turned.x, turned.y, turned.z, f32(p.steps[1].w), f32(p.last),
  );
  output[id.x] = all[id.x];
}
