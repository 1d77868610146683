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
        // Four at a time, so that most of the work is not the loop itself.
        for (var k = 0u; k < SIDE; k += 4u) {
            let top = k * SIDE + column;
            sum += a[row + k] * b[top]
                + a[row + k + 1u] * b[top + SIDE]
                + a[row + k + 2u] * b[top + 2u * SIDE]
                + a[row + k + 3u] * b[top + 3u * SIDE];
        }
        c[row + column] = sum;
    }
}
