// What becomes of a matrix's results. Before it stand BIASED, and INTO: the result is stored, added to what is there, or
// two results, a gate and what it lets through, become one.

const STORED: u32 = 0u;
const ADDED: u32 = 1u;
const SILU: u32 = 2u;
const GELU: u32 = 3u;

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
// A norm's weights, then a bias.
@group(0) @binding(2) var<storage, read> extra: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

fn sigmoid(x: f32) -> f32 {
    return 1.0 / (1.0 + exp(min(-x, 80.0)));
}

fn gated(gate: f32, up: f32) -> f32 {
    if (INTO == SILU) {
        return gate * sigmoid(gate) * up;
    }
    let cube = gate * gate * gate * 0.044715;
    return gate * sigmoid((gate + cube) * 2.0 * 0.7978846) * up;
}

// Four results that follow each other, of one row of numbers.
fn finish(token: u32, row: u32, results: vec4<f32>) {
    let line = token * m.stride_out;
    if (INTO == SILU || INTO == GELU) {
        if (row + 1u < m.rows) {
            out[line + (m.first + row) / 2u] = gated(results.x, results.y);
        }
        if (row + 3u < m.rows) {
            out[line + (m.first + row) / 2u + 1u] = gated(results.z, results.w);
        }
        return;
    }
    let count = min(4u, m.rows - min(row, m.rows));
    for (var i = 0u; i < count; i += 1u) {
        let place = m.first + row + i;
        var result = results[i];
        if (BIASED) {
            let at = m.bias + place;
            result += extra[at / 4u][at % 4u];
        }
        if (INTO == ADDED) {
            result += out[line + place];
        }
        out[line + place] = result;
    }
}
