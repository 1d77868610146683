// A picture of a state nobody wrote `show` for: each cell's first number as a shade of grey.

struct Params {
    width: u32,
    rows: u32,
    lanes: u32,
    is_float: u32,
    at: u32,
    end: u32,
    stride: u32,
    out_rows: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> picture: array<u32>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.width || id.y >= params.rows) {
        return;
    }
    let cell = id.y * params.width + id.x;
    let word = state[cell * params.lanes];
    let light = select(select(0.0, 1.0, word != 0u), saturate(bitcast<f32>(word)), params.is_float == 1u);
    picture[cell] = pack4x8unorm(vec4<f32>(light, light, light, 1.0));
}
