struct Shape {
  inner: u32,
  columns: u32,
}

// One item is one row of A and of C; B is whole.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@group(0) @binding(3) var<uniform> shape: Shape;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = id.x;
  if (row * shape.columns >= arrayLength(&c)) {
    return;
  }
  for (var column = 0u; column < shape.columns; column++) {
    var sum = 0.0;
    for (var k = 0u; k < shape.inner; k++) {
      sum += a[row * shape.inner + k] * b[k * shape.columns + column];
    }
    c[row * shape.columns + column] = sum;
  }
}
