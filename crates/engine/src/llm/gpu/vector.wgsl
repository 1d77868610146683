// A matrix by one row of numbers: a workgroup computes four results. NORMED: the row goes through a norm on its way; the
// squares are added up beside the products, so that it is read once.

const LANES: u32 = 64u;

var<workgroup> sums: array<vec4<f32>, LANES>;
var<workgroup> squares: array<f32, LANES>;

fn product(block: u32, at: u32, low: vec4<f32>, high: vec4<f32>, total: f32) -> f32 {
    let w = eight(block, at);
    let s = scales(block);
    return s.x * dot(w.low, low) + s.y * dot(w.high, high) + s.z * total;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let token = group.y;
    let row = group.x * 4u;
    let last = m.rows - 1u;
    let rows = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(last)) * m.blocks;
    var sum = vec4<f32>(0.0);
    var square = 0.0;
    let one = vec4<f32>(1.0);
    for (var piece = lane; piece < m.blocks * 4u; piece += LANES) {
        let block = piece / 4u;
        let at = piece % 4u;
        let i = block * 8u + at;
        var low = x[token * m.stride_in + i];
        var high = x[token * m.stride_in + i + 4u];
        if (NORMED) {
            square += dot(low, low) + dot(high, high);
            low *= extra[i];
            high *= extra[i + 4u];
        }
        let total = dot(low, one) + dot(high, one);
        sum += vec4<f32>(
            product(rows.x + block, at, low, high, total),
            product(rows.y + block, at, low, high, total),
            product(rows.z + block, at, low, high, total),
            product(rows.w + block, at, low, high, total),
        );
    }
    sums[lane] = sum;
    squares[lane] = square;
    workgroupBarrier();
    for (var step = LANES / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            sums[lane] += sums[lane + step];
            squares[lane] += squares[lane + step];
        }
        workgroupBarrier();
    }
    if (lane == 0u) {
        var results = sums[0];
        if (NORMED) {
            results *= 1.0 / sqrt(squares[0] / f32(m.blocks * 32u) + m.eps);
        }
        finish(token, row, results);
    }
}
