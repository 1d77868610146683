// Makes a band's picture small: each pixel the mean of a square of the full one, cut at the band's end.

struct Params {
    width: u32,
    rows: u32,
    lanes: u32,
    is_float: u32,
    // The buffer's row of the first square, and the row no square passes.
    at: u32,
    end: u32,
    stride: u32,
    out_rows: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> full: array<u32>;
@group(0) @binding(2) var<storage, read_write> small: array<u32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let out_width = (params.width + params.stride - 1u) / params.stride;
    if (id.x >= out_width || id.y >= params.out_rows) {
        return;
    }
    let first = vec2<u32>(id.x * params.stride, params.at + id.y * params.stride);
    let last = min(first + params.stride, vec2<u32>(params.width, params.end));
    var sum = vec4<u32>(0u);
    for (var y = first.y; y < last.y; y++) {
        for (var x = first.x; x < last.x; x++) {
            let pixel = full[y * params.width + x];
            sum += (vec4<u32>(pixel) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
        }
    }
    let count = max((last.x - first.x) * (last.y - first.y), 1u);
    let mean = (sum + count / 2u) / count;
    small[id.y * out_width + id.x] = mean.x | (mean.y << 8u) | (mean.z << 16u) | (mean.w << 24u);
}
