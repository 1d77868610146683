// The Mandelbrot set, smoothly coloured.
//
//   shoal render examples/kernels/mandelbrot.wgsl --size 1920x1080 --samples 4 -o mandelbrot.png

struct Params {
    tile_x: u32,
    tile_y: u32,
    tile_width: u32,
    tile_height: u32,
    image_width: u32,
    image_height: u32,
    samples: u32,
    stride: u32,
}

@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

const MOST_STEPS = 400u;
const CENTRE = vec2<f32>(-0.65, 0.0);
const HEIGHT = 2.5;

// How many steps a point takes to leave, with a fraction so that bands do not show; 0 if it stays.
fn steps(c: vec2<f32>) -> f32 {
    var z = vec2<f32>(0.0);
    for (var i = 0u; i < MOST_STEPS; i++) {
        z = vec2<f32>(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        let size = dot(z, z);
        if (size > 256.0) {
            return f32(i) + 2.0 - log2(0.5 * log2(size));
        }
    }
    return 0.0;
}

fn colour(steps: f32) -> vec3<f32> {
    if (steps <= 0.0) {
        return vec3<f32>(0.0);
    }
    let t = 0.17 * sqrt(steps) - 0.2;
    return 0.5 - 0.5 * cos(6.2831853 * (t + vec3<f32>(0.0, 0.05, 0.12)));
}

// Points of one pixel, spread evenly (the R2 sequence).
fn jitter(sample: u32) -> vec2<f32> {
    return fract(0.5 + f32(sample) * vec2<f32>(0.7548777, 0.5698403));
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.tile_width || id.y >= params.tile_height) {
        return;
    }
    let corner = vec2<f32>(f32(params.tile_x + id.x), f32(params.tile_y + id.y));
    let image = vec2<f32>(f32(params.image_width), f32(params.image_height));
    var sum = vec3<f32>(0.0);
    for (var sample = 0u; sample < params.samples; sample++) {
        let place = (corner + jitter(sample) - 0.5 * image) * vec2<f32>(1.0, -1.0);
        sum += colour(steps(CENTRE + place * (HEIGHT / image.y)));
    }
    let mean = sum / f32(params.samples);
    output[id.y * params.stride + id.x] = pack4x8unorm(vec4<f32>(mean, 1.0));
}
