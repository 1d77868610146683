// Points of a spiral: no input at all, two numbers out of each item, and the item's place in the whole.
//
//   shoal map examples/kernels/spiral.wgsl --items 100000 --param turns=12 -o points.npy

struct Params {
    // Filled by Shoal, found by their names: where this unit stands in the job.
    offset: u32,
    length: u32,
    total: u32,
    // Given with the job.
    turns: f32,
}

@group(0) @binding(0) var<storage, read_write> output: array<vec2<f32>>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.length) {
        return;
    }
    let along = f32(params.offset + id.x) / f32(params.total);
    let angle = along * params.turns * 6.2831853;
    output[id.x] = along * vec2<f32>(cos(angle), sin(angle));
}
