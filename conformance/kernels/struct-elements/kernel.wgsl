struct Body {
  position: vec2<f32>,
  mass: f32,
  speed: f32,
}

struct Report {
  energy: f32,
  reach: f32,
}

@group(0) @binding(0) var<storage, read> input: array<Body>;
@group(0) @binding(1) var<storage, read_write> output: array<Report>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= arrayLength(&output)) {
    return;
  }
  let body = input[i];
  output[i] = Report(0.5 * body.mass * body.speed * body.speed, length(body.position));
}
