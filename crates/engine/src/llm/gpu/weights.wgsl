// How weights of one type lie in a buffer, eight at a time: all kernels that read weights begin with this. Before it stand
// BITS (of a quant; 16 and 17 are halves of two kinds, 32 are floats), SCALES (how they are written) and ZERO (what a quant
// of fewer than eight bits is too large by).

struct Matrix {
    // Of 32 columns each.
    blocks: u32,
    rows: u32,
    // Where the first row's result stands.
    first: u32,
    // Of a row that goes in, in fours, and of one that comes out.
    stride_in: u32,
    stride_out: u32,
    // Words at which the upper bits and the scales begin.
    upper: u32,
    scales: u32,
    // Where a bias begins, behind the norm's weights.
    bias: u32,
    eps: f32,
    scale: f32,
    first_token: u32,
    unused: u32,
}

struct Run {
    // Rows of this run.
    count: u32,
    unused_a: u32,
    unused_b: u32,
    unused_c: u32,
}

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(4) var<uniform> m: Matrix;
@group(0) @binding(5) var<uniform> run: Run;

const HALF: u32 = 0u;
const HALVES: u32 = 1u;
const SIXES: u32 = 2u;
const SIGNED: u32 = 3u;
const NONE: u32 = 4u;

// Columns 4 * at to 4 * at + 3 of a block, and those 16 further on.
struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

fn bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn signed(word: u32) -> vec4<f32> {
    let shifted = vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u);
    return vec4<f32>(bitcast<vec4<i32>>(shifted) >> vec4<u32>(24u));
}

fn bfloats(word: u32) -> vec2<f32> {
    return vec2<f32>(bitcast<f32>(word << 16u), bitcast<f32>(word & 0xffff0000u));
}

fn eight(block: u32, at: u32) -> Eight {
    if (BITS == 32u) {
        let i = block * 32u + at * 4u;
        let low = vec4<u32>(weights[i], weights[i + 1u], weights[i + 2u], weights[i + 3u]);
        let high = vec4<u32>(weights[i + 16u], weights[i + 17u], weights[i + 18u], weights[i + 19u]);
        return Eight(bitcast<vec4<f32>>(low), bitcast<vec4<f32>>(high));
    }
    if (BITS == 16u) {
        let i = block * 16u + at * 2u;
        return Eight(
            vec4<f32>(unpack2x16float(weights[i]), unpack2x16float(weights[i + 1u])),
            vec4<f32>(unpack2x16float(weights[i + 8u]), unpack2x16float(weights[i + 9u])),
        );
    }
    if (BITS == 17u) {
        let i = block * 16u + at * 2u;
        return Eight(
            vec4<f32>(bfloats(weights[i]), bfloats(weights[i + 1u])),
            vec4<f32>(bfloats(weights[i + 8u]), bfloats(weights[i + 9u])),
        );
    }
    if (BITS == 8u) {
        let i = block * 8u + at;
        return Eight(signed(weights[i]), signed(weights[i + 4u]));
    }
    let four = bytes(weights[block * 4u + at]);
    var low = four & vec4<u32>(15u);
    var high = four >> vec4<u32>(4u);
    if (BITS == 5u) {
        let upper = weights[m.upper + block] >> (at * 4u);
        let places = vec4<u32>(0u, 1u, 2u, 3u);
        low |= ((vec4<u32>(upper) >> places) & vec4<u32>(1u)) << vec4<u32>(4u);
        high |= ((vec4<u32>(upper) >> (places + vec4<u32>(16u))) & vec4<u32>(1u)) << vec4<u32>(4u);
    }
    if (BITS == 6u) {
        let i = m.upper + block * 2u;
        let places = vec4<u32>(0u, 2u, 4u, 6u) + vec4<u32>(at * 8u);
        low |= ((vec4<u32>(weights[i]) >> places) & vec4<u32>(3u)) << vec4<u32>(4u);
        high |= ((vec4<u32>(weights[i + 1u]) >> places) & vec4<u32>(3u)) << vec4<u32>(4u);
    }
    return Eight(vec4<f32>(low) - vec4<f32>(ZERO), vec4<f32>(high) - vec4<f32>(ZERO));
}

// What the lower and the upper half of a block are multiplied by, and what is added to each.
fn scales(block: u32) -> vec3<f32> {
    if (SCALES == HALF) {
        let both = unpack2x16float(weights[m.scales + block / 2u]);
        let scale = select(both.x, both.y, (block & 1u) == 1u);
        return vec3<f32>(scale, scale, 0.0);
    }
    if (SCALES == HALVES) {
        let both = unpack2x16float(weights[m.scales + block]);
        return vec3<f32>(both.x, both.x, both.y);
    }
    if (SCALES == SIXES || SCALES == SIGNED) {
        let i = m.scales + block / 8u * 5u;
        let whole = unpack2x16float(weights[i]);
        let two = weights[i + 1u + (block & 7u) / 2u] >> ((block & 1u) * 16u);
        if (SCALES == SIXES) {
            let scale = whole.x * f32(two & 255u);
            return vec3<f32>(scale, scale, -(whole.y * f32((two >> 8u) & 255u)));
        }
        let both = signed(two);
        return vec3<f32>(whole.x * both.x, whole.x * both.y, 0.0);
    }
    return vec3<f32>(1.0, 1.0, 0.0);
}
