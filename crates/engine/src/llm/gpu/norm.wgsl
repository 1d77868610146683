// A norm of each row. JOINED: it is added to what is there.

struct Norm {
    width: u32,
    eps: f32,
    unused_a: u32,
    unused_b: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> n: Norm;

const LANES: u32 = 64u;

var<workgroup> squares: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let line = group.y * n.width;
    var square = 0.0;
    for (var i = lane; i < n.width; i += LANES) {
        square += x[line + i] * x[line + i];
    }
    squares[lane] = square;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            squares[lane] += squares[lane + step];
        }
        workgroupBarrier();
    }
    let factor = 1.0 / sqrt(squares[0] / f32(n.width) + n.eps);
    for (var i = lane; i < n.width; i += LANES) {
        let result = x[line + i] * factor * weights[i];
        if (JOINED) {
            out[line + i] += result;
        } else {
            out[line + i] = result;
        }
    }
}
