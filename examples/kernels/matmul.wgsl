// One row of C = A * B per item, for square matrices: A is split by rows, B goes to every node whole.
//
//   shoal map examples/kernels/matmul.wgsl a.npy b.npy --in-per a=256 --whole b --out-per 256 -o c.npy

// Elements of a row; the arrays are flat.
const SIDE = 256u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x * SIDE;
    if (row >= arrayLength(&c)) {
        return;
    }
    for (var column = 0u; column < SIDE; column++) {
        var sum = 0.0;
        for (var k = 0u; k < SIDE; k++) {
            sum += a[row + k] * b[k * SIDE + column];
        }
        c[row + column] = sum;
    }
}
