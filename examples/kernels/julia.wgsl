// A Julia set whose constant comes with the job.
//
//   shoal render examples/kernels/julia.wgsl --size 1200x800 --param c=-0.79,0.15 -o julia.png

struct Params {
    tile_x: u32,
    tile_y: u32,
    tile_width: u32,
    tile_height: u32,
    image_width: u32,
    image_height: u32,
    stride: u32,
    c: vec2<f32>,
}

// Linear light as floats: Shoal turns it into the picture's 8 bits.
@group(0) @binding(0) var<storage, read_write> output: array<vec4<f32>>;
@group(0) @binding(1) var<uniform> params: Params;

const MOST_STEPS = 300u;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.tile_width || id.y >= params.tile_height) {
        return;
    }
    let pixel = vec2<f32>(f32(params.tile_x + id.x), f32(params.tile_y + id.y)) + 0.5;
    let image = vec2<f32>(f32(params.image_width), f32(params.image_height));
    var z = (pixel - 0.5 * image) * (2.4 / image.y);
    var i = 0u;
    while (i < MOST_STEPS && dot(z, z) < 64.0) {
        z = vec2<f32>(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + params.c;
        i++;
    }
    let t = f32(i) / f32(MOST_STEPS);
    let light = select(vec3<f32>(t, t * t, sqrt(t) * 0.6), vec3<f32>(0.01), i == MOST_STEPS);
    output[id.y * params.stride + id.x] = vec4<f32>(light, 1.0);
}
