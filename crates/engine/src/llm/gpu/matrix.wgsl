// A matrix by many rows of numbers: a workgroup computes 32 results of 32 rows, 32 columns at a time, each invocation four
// by four. Weights become numbers once for all 32 rows.

const TILE: u32 = 32u;
const LANES: u32 = 64u;
// Fours of a block, and one more, so that neighbours do not wait for the same bank.
const FOURS: u32 = 9u;

var<workgroup> own_weights: array<vec4<f32>, 288>;
var<workgroup> own_rows: array<vec4<f32>, 288>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * TILE;
    let token = group.y * TILE;
    let mine = (lane % 8u) * 4u;
    let tokens = (lane / 8u) * 4u;
    var sums = array<vec4<f32>, 4>(vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0), vec4<f32>(0.0));
    for (var block = 0u; block < m.blocks; block += 1u) {
        for (var i = lane; i < TILE * 4u; i += LANES) {
            let at = i % 4u;
            let begin = min(row + i / 4u, m.rows - 1u) * m.blocks + block;
            let w = eight(begin, at);
            let s = scales(begin);
            own_weights[i / 4u * FOURS + at] = w.low * s.x + vec4<f32>(s.z);
            own_weights[i / 4u * FOURS + 4u + at] = w.high * s.y + vec4<f32>(s.z);
        }
        for (var i = lane; i < TILE * 8u; i += LANES) {
            let begin = min(token + i / 8u, run.count - 1u);
            own_rows[i / 8u * FOURS + i % 8u] = x[begin * m.stride_in + block * 8u + i % 8u];
        }
        workgroupBarrier();
        for (var four = 0u; four < 8u; four += 1u) {
            let a = own_weights[mine * FOURS + four];
            let b = own_weights[(mine + 1u) * FOURS + four];
            let c = own_weights[(mine + 2u) * FOURS + four];
            let d = own_weights[(mine + 3u) * FOURS + four];
            for (var t = 0u; t < 4u; t += 1u) {
                let it = own_rows[(tokens + t) * FOURS + four];
                sums[t] += vec4<f32>(dot(a, it), dot(b, it), dot(c, it), dot(d, it));
            }
        }
        workgroupBarrier();
    }
    for (var t = 0u; t < 4u; t += 1u) {
        if (token + tokens + t < run.count) {
            finish(token + tokens + t, row + mine, sums[t]);
        }
    }
}
