//! `shoal map` and `shoal render` on a real node, against a reference computed here.

use crate::material::{example, floats, npy, read_floats, read_npy};
use crate::world::{Folder, Pool};

const SCALE: &str = "
struct Params { factor: f32, offset: u32, length: u32, total: u32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.length { return; }
    output[id.x] = input[id.x] * params.factor + f32(params.offset + id.x);
}";

const PAIRS: &str = "
@group(0) @binding(0) var<storage, read> points: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read> table: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<vec2<f32>>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&output) { return; }
    output[id.x] = points[id.x].yx + vec2<f32>(table[0], table[2]);
}";

const COUNT: &str = "
struct Params { offset: u32, length: u32 }
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.length { return; }
    output[2u * id.x] = params.offset + id.x;
    output[2u * id.x + 1u] = 7u;
}";

const GRADIENT: &str = "
struct Params { tile_x: u32, tile_y: u32, tile_width: u32, tile_height: u32, stride: u32 }
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.tile_width || id.y >= params.tile_height { return; }
    let place = vec2<f32>(f32(params.tile_x + id.x), f32(params.tile_y + id.y));
    let color = vec4<f32>(place / 255.0, 0.2, 1.0);
    output[id.y * params.stride + id.x] = pack4x8unorm(color);
}";

#[test]
fn a_map_equals_its_reference_and_keeps_the_shape() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let values: Vec<f32> = (0..600_000).map(|i| (i % 1013) as f32).collect();
    let kernel = here.file("scale.wgsl", SCALE);
    let input = here.file("in.npy", npy("(200, 3000)", &values));
    let out = here.path("out.npy").display().to_string();
    pool.run(&["map", &kernel, &input, "-o", &out, "--param", "factor=0.5", "--unit", "65536"])
        .ok();
    let (shape, result) = read_npy(&here.read("out.npy"));
    assert_eq!(shape, "(200, 3000)");
    let wrong = (0..values.len()).find(|&i| result[i] != values[i] * 0.5 + i as f32);
    assert_eq!((result.len(), wrong), (values.len(), None));
    let job = pool.job(1).expect("the job");
    assert!(job["unitsDone"].as_u64().expect("a count") >= 9, "{job}");
}

#[test]
fn a_node_over_https_computes_the_same() {
    let pool = Pool::start();
    let link = pool.join.replace("http://", "https://");
    let _node = pool.node_by(&link, "secure", &[]);
    let here = Folder::new();
    let values: Vec<f32> = (0..3_000_000).map(|i| i as f32).collect();
    let kernel = here.file("scale.wgsl", SCALE.replace("+ f32(params.offset + id.x)", ""));
    let input = here.file("in.npy", npy("(3000000,)", &values));
    let out = here.path("out.npy").display().to_string();
    let url = pool.url.replace("http://", "https://");
    let server = ["--url", &url, "--key", &pool.key];
    let args = ["map", &kernel, &input, "-o", &out, "--param", "factor=2"];
    pool.run(&[&args[..], &server].concat()).ok();
    let (_, result) = read_npy(&here.read("out.npy"));
    assert!(result.iter().zip(&values).all(|(out, value)| *out == value * 2.0));
}

#[test]
fn raw_numbers_go_in_and_out() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let values = [0.0_f32, 0.5, 1.0, -2.0, 3.25];
    let input = here.file("in.f32", floats(&values));
    let out = here.path("out.f32").display().to_string();
    let wave = example("wave.wgsl");
    let done = pool.run(&["map", &wave, &input, "--raw", "f32", "-o", &out, "--json"]).ok();
    assert_eq!(done.json()["job"]["state"], "done");
    assert_eq!(read_floats(&here.read("out.f32")).len(), values.len());
}

#[test]
fn vectors_whole_inputs_and_outputs_of_another_size() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("pairs.wgsl", PAIRS);
    let points = here.file("points.npy", npy("(3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    let table = here.file("table.npy", npy("(3,)", &[10.0, 0.0, 20.0]));
    let out = here.path("out.npy").display().to_string();
    pool.run(&["map", &kernel, &points, &table, "--whole", "table", "-o", &out]).ok();
    let (shape, result) = read_npy(&here.read("out.npy"));
    assert_eq!((shape.as_str(), result), ("(3, 2)", vec![12.0, 21.0, 14.0, 23.0, 16.0, 25.0]));

    let kernel = here.file("count.wgsl", COUNT);
    let out = here.path("out.u32").display().to_string();
    pool.run(&["map", &kernel, "--items", "5000", "--out-per", "2", "-o", &out]).ok();
    let bytes = here.read("out.u32");
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    let expected: Vec<u32> = (0..5000).flat_map(|i| [i, 7]).collect();
    assert_eq!(words, expected);
}

#[test]
fn a_picture_is_put_together_from_its_tiles() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("gradient.wgsl", GRADIENT);
    let out = here.path("out.png").display().to_string();
    pool.run(&["render", &kernel, "--size", "150x90", "--tile", "32", "-o", &out]).ok();
    let image = image::load_from_memory(&here.read("out.png")).expect("a PNG").to_rgba8();
    assert_eq!(image.dimensions(), (150, 90));
    let wrong =
        image.enumerate_pixels().find(|(x, y, pixel)| pixel.0 != [*x as u8, *y as u8, 51, 255]);
    assert_eq!(wrong, None);
}

#[test]
fn the_path_tracer_renders() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let out = here.path("out.png").display().to_string();
    pool.run(&["render", &example("path.wgsl"), "--size", "96x64", "--samples", "2", "-o", &out])
        .ok();
    let image = image::load_from_memory(&here.read("out.png")).expect("a PNG").to_rgba8();
    let first = image.get_pixel(0, 0);
    assert!(image.pixels().any(|pixel| pixel != first), "a picture of something");
}
