// What a query finds: one head of one row looks at 64 positions at a time, and what it found before fades as larger scores
// turn up. So no scores are kept, however long the text. Before it stands HEAD.

struct Heads {
    heads: u32,
    kv_heads: u32,
    context: u32,
    window: u32,
    eps: f32,
    scale: f32,
    cap: f32,
    stride: u32,
}

@group(0) @binding(0) var<storage, read> numbers: array<f32>;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@group(0) @binding(4) var<uniform> h: Heads;
@group(0) @binding(5) var<storage, read> values: array<u32>;

const LANES: u32 = 64u;
// Pairs of a value's elements that an invocation adds up.
const EACH: u32 = (HEAD / 2u + LANES - 1u) / LANES;
const LOWEST: f32 = -3.0e38;

var<workgroup> query: array<vec2<f32>, HEAD / 2u>;
var<workgroup> shares: array<f32, LANES>;

fn score(begin: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < HEAD / 2u; i += 1u) {
        sum += dot(query[i], unpack2x16float(keys[begin + i]));
    }
    sum *= h.scale;
    if (h.cap > 0.0) {
        let power = exp(min(sum * 2.0 / h.cap, 80.0));
        sum = h.cap * (1.0 - 2.0 / (power + 1.0));
    }
    return sum;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let row = group.y;
    let kv = head / (h.heads / h.kv_heads);
    let line = h.kv_heads * (HEAD / 2u);
    let base = rows[row].x * h.context * line + kv * (HEAD / 2u);
    let end = rows[row].y + 1u;
    let first = select(0u, end - min(h.window, end), h.window > 0u);
    let own = (row * (h.heads + 2u * h.kv_heads) + head) * HEAD;
    for (var i = lane; i < HEAD / 2u; i += LANES) {
        query[i] = vec2<f32>(numbers[own + i * 2u], numbers[own + i * 2u + 1u]);
    }
    var most = LOWEST;
    var total = 0.0;
    var found: array<vec2<f32>, EACH>;
    workgroupBarrier();
    for (var tile = first; tile < end; tile += LANES) {
        let position = tile + lane;
        var mine = LOWEST;
        if (position < end) {
            mine = score(base + position * line);
        }
        shares[lane] = mine;
        workgroupBarrier();
        var top = most;
        for (var i = 0u; i < LANES; i += 1u) {
            top = max(top, shares[i]);
        }
        workgroupBarrier();
        shares[lane] = select(0.0, exp(mine - top), position < end);
        workgroupBarrier();
        let fade = exp(most - top);
        most = top;
        total *= fade;
        for (var each = 0u; each < EACH; each += 1u) {
            found[each] *= fade;
        }
        let count = min(LANES, end - tile);
        for (var i = 0u; i < count; i += 1u) {
            let share = shares[i];
            total += share;
            let begin = base + (tile + i) * line;
            for (var each = 0u; each < EACH; each += 1u) {
                let pair = min(lane + each * LANES, HEAD / 2u - 1u);
                found[each] += share * unpack2x16float(values[begin + pair]);
            }
        }
        workgroupBarrier();
    }
    let to = row * h.stride + head * HEAD;
    for (var each = 0u; each < EACH; each += 1u) {
        let pair = lane + each * LANES;
        if (pair < HEAD / 2u) {
            out[to + pair * 2u] = found[each].x / total;
            out[to + pair * 2u + 1u] = found[each].y / total;
        }
    }
}
