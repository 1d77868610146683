// Queries, keys and values of each row on their way to attention: a norm for each head where a model has it (NORMED), the
// turn by position, and keys and values into the cache as halves. A workgroup has one head of one row. Before it stand HEAD
// (elements of a head), PAIRS (that are turned), HALVES (which elements make a pair) and NORMED.

struct Heads {
    heads: u32,
    kv_heads: u32,
    // Positions of a slot.
    context: u32,
    // Of positions that are seen; 0: of all.
    window: u32,
    eps: f32,
    scale: f32,
    // 0: none.
    cap: f32,
    // Of what a row's heads find.
    stride: u32,
}

@group(0) @binding(0) var<storage, read_write> numbers: array<f32>;
// Slot and position.
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> turns: array<vec2<f32>>;
// Of queries, then of keys.
@group(0) @binding(3) var<storage, read> norms: array<f32>;
@group(0) @binding(4) var<uniform> h: Heads;
@group(0) @binding(5) var<storage, read_write> keys: array<u32>;
@group(0) @binding(6) var<storage, read_write> values: array<u32>;

const LANES: u32 = 64u;

var<workgroup> own: array<f32, HEAD>;
var<workgroup> squares: array<f32, LANES>;

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let row = group.y;
    let base = (row * (h.heads + 2u * h.kv_heads) + head) * HEAD;
    let is_value = head >= h.heads + h.kv_heads;
    var square = 0.0;
    for (var i = lane; i < HEAD; i += LANES) {
        let number = numbers[base + i];
        own[i] = number;
        square += number * number;
    }
    squares[lane] = square;
    workgroupBarrier();
    if (NORMED && !is_value) {
        for (var step = LANES / 2u; step > 0u; step /= 2u) {
            if (lane < step) {
                squares[lane] += squares[lane + step];
            }
            workgroupBarrier();
        }
        let factor = 1.0 / sqrt(squares[0] / f32(HEAD) + h.eps);
        let begin = select(0u, HEAD, head >= h.heads);
        for (var i = lane; i < HEAD; i += LANES) {
            own[i] *= factor * norms[begin + i];
        }
        workgroupBarrier();
    }
    if (!is_value) {
        for (var pair = lane; pair < PAIRS; pair += LANES) {
            let turn = turns[row * PAIRS + pair];
            let first = select(pair * 2u, pair, HALVES);
            let second = select(pair * 2u + 1u, pair + PAIRS, HALVES);
            let a = own[first];
            let b = own[second];
            own[first] = a * turn.x - b * turn.y;
            own[second] = a * turn.y + b * turn.x;
        }
    }
    workgroupBarrier();
    if (head < h.heads) {
        for (var i = lane; i < HEAD; i += LANES) {
            numbers[base + i] = own[i];
        }
        return;
    }
    let at = rows[row].x * h.context + rows[row].y;
    let kv = (head - h.heads) % h.kv_heads;
    let to = (at * h.kv_heads + kv) * (HEAD / 2u);
    for (var i = lane; i < HEAD / 2u; i += LANES) {
        let both = pack2x16float(vec2<f32>(own[i * 2u], own[i * 2u + 1u]));
        if (is_value) {
            values[to + i] = both;
        } else {
            keys[to + i] = both;
        }
    }
}
