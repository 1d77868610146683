//! `--partial`: what is done of jobs that failed or were cancelled.

use serde_json::Value;

use crate::material::{example, npy, program, read_npy};
use crate::world::{Folder, Pool};

const ITEMS: usize = 65_536;
const UNIT: &str = "4096";

/// Doubles, slowly; from `broken` on it never ends.
fn doubling(broken: usize) -> String {
    let step = "y = sin(y) + cos(y * 1.7);\n".repeat(400);
    format!(
        "@group(0) @binding(0) var<storage, read> input: array<f32>;
        @group(0) @binding(1) var<storage, read_write> output: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            if id.x >= arrayLength(&output) {{ return; }}
            let x = input[id.x];
            var y = x;
            var turns = 4u;
            if x >= {broken}.0 {{ turns = 1u << 30u; }}
            for (var i = 0u; i < turns; i++) {{ {step} }}
            output[id.x] = x * 2.0 + clamp(y, 0.0, 0.0);
        }}"
    )
}

fn numbers() -> Vec<f32> {
    (0..ITEMS).map(|item| item as f32).collect()
}

/// What is there is right, and the rest is no number: just what the list says.
fn check(here: &Folder, file: &str) -> u64 {
    let (shape, values) = read_npy(&here.read(file));
    assert_eq!(shape, format!("({ITEMS},)"));
    let list: Value =
        serde_json::from_slice(&here.read(&format!("{file}.missing.json"))).expect("JSON");
    let mut expected: Vec<f32> = numbers().iter().map(|x| x * 2.0).collect();
    for span in list["missing"].as_array().expect("a list") {
        let number = |name: &str| span[name].as_u64().expect("a number") as usize;
        expected[number("start")..][..number("len")].fill(f32::NAN);
    }
    let is_same =
        |(found, wanted): (&f32, &f32)| found == wanted || found.is_nan() && wanted.is_nan();
    assert!(values.iter().zip(&expected).all(is_same));
    let done = values.iter().filter(|value| !value.is_nan()).count() as u64;
    assert_eq!((list["done"].as_u64(), list["items"].as_u64()), (Some(done), Some(ITEMS as u64)));
    assert!(0 < done && done < ITEMS as u64);
    done
}

#[test]
fn of_a_map_that_fails_late_the_rest_is_saved() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("late.wgsl", doubling(40_000));
    let input = here.file("in.npy", npy(&format!("({ITEMS},)"), &numbers()));
    let (out, again) = (here.path("out.npy"), here.path("again.npy"));
    let (out, again) = (out.display().to_string(), again.display().to_string());
    let map = ["map", &kernel, &input, "-o", &out, "--unit", UNIT, "--limit-seconds", "5"];
    pool.run(&map).fails(1, &["failed"]);
    assert!(!here.path("out.npy").exists(), "nobody asked for a part");
    let partial = [&map[..], &["--partial"]].concat();
    pool.run(&partial).fails(1, &["failed", "of 65.5 k items are done", "missing.json"]);
    check(&here, "out.npy");
    // Later, by whoever likes.
    pool.run(&["result", "2", "-o", &again]).fails(1, &["failed"]);
    pool.run(&["result", "2", "-o", &again, "--partial"]).fails(1, &["items are done"]);
    check(&here, "again.npy");
    pool.run(&["watch", "2", "-o", &again, "--partial"]).fails(1, &["items are done"]);
    let json = pool.run(&["--json", "result", "2", "-o", &again, "--partial"]);
    json.fails(1, &["{\"partial\":{\"message\":", "items are done", "\"job_failed\""]);
    // The list goes when all of it is there.
    let whole = here.file("whole.wgsl", doubling(ITEMS));
    pool.run(&["map", &whole, &input, "-o", &again]).ok();
    assert!(!here.path("again.npy.missing.json").exists());
}

#[test]
fn of_a_program_nothing_is_saved_and_the_failure_is_told() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let out = here.path("out.txt").display().to_string();
    let args = ["exec", program(), "--lines", "--stop-on-error", "--", "exit"];
    pool.run_with(&args, b"3\n5\n7\n").fails(1, &["exit code 9"]);
    let watch = pool.run(&["watch", "1", "-o", &out, "--partial"]);
    watch.fails(1, &["nothing is saved", "exit code 9"]);
}

#[test]
fn of_a_cancelled_map_what_is_done_is_saved() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("slow.wgsl", doubling(ITEMS));
    let input = here.file("in.npy", npy(&format!("({ITEMS},)"), &numbers()));
    let out = here.path("out.npy").display().to_string();
    let map = ["map", &kernel, &input, "-o", &out, "--unit", "512", "--partial"];
    let client = pool.begin(&map, b"");
    pool.until_done(2);
    pool.run(&["cancel", "1"]).ok();
    client.end().fails(1, &["cancelled", "items are done"]);
    check(&here, "out.npy");
}

#[test]
fn of_a_cancelled_picture_the_tiles_are_saved() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let slow = std::fs::read_to_string(example("mandelbrot.wgsl")).expect("an example");
    let kernel = here.file("slow.wgsl", slow.replace("MOST_STEPS = 400u", "MOST_STEPS = 60000u"));
    let out = here.path("out.png").display().to_string();
    let render =
        ["render", &kernel, "--size", "1024x1024", "--tile", "64", "-o", &out, "--partial"];
    let client = pool.begin(&render, b"");
    pool.until_done(1);
    pool.run(&["cancel", "1"]).ok();
    client.end().fails(1, &["cancelled", "of 256 items are done"]);
    assert!(here.read("out.png").starts_with(b"\x89PNG"));
    assert!(here.path("out.png.missing.json").exists());
}
