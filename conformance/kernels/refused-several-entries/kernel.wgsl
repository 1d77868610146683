@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn first() {
  output[0] = input[0];
}

@compute @workgroup_size(64)
fn second() {
  output[0] = input[1];
}
