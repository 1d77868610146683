//! Arrays that come in from pipes and archives, and results that are only looked at.

use std::process::Command;

use serde_json::json;

use crate::material::{npy, program, read_npy};
use crate::world::{Folder, Pool};

const SQUARE: &str = "
    @group(0) @binding(0) var<storage, read> input: array<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&output) { output[id.x] = input[id.x] * input[id.x]; }
    }";

#[test]
fn without_an_output_what_came_out_is_summed_up() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("square.wgsl", SQUARE);
    let input = here.file("in.npy", npy("(2, 2)", &[1.0, -2.0, 3.0, 0.5]));
    let done = pool.run(&["map", &kernel, &input]).ok();
    let expected =
        "shape  (2, 2)\ndtype  float32\nmin    0.25\nmean   3.5625\nmax    9\nfirst  1 4 9 0.25\n";
    assert_eq!(String::from_utf8_lossy(&done.stdout), expected);
    let done = pool.run(&["map", &kernel, &input, "--json"]).ok().json();
    let summary = json!({"shape": [2, 2], "dtype": "float32", "min": 0.25, "mean": 3.5625, "max": 9.0,
        "nans": 0, "first": [1.0, 4.0, 9.0, 0.25]});
    assert_eq!((&done["output"], &done["summary"]), (&json!(null), &summary));
    let quiet = pool.run(&["map", &kernel, &input, "--quiet"]).ok();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn arrays_come_from_pipes_and_archives() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("square.wgsl", SQUARE);
    let out = here.path("out.npy").display().to_string();
    let map =
        |input: &str, stdin: &[u8]| pool.run_with(&["map", &kernel, input, "-o", &out], stdin);
    map("-", &npy("(3,)", &[1.0, 2.0, 3.0])).ok();
    assert_eq!(read_npy(&here.read("out.npy")).1, [1.0, 4.0, 9.0]);
    let (one, two) = (npy("(2,)", &[5.0, 6.0]), npy("(1,)", &[7.0]));
    let files = [here.file("heights.npy", one), here.file("depths.npy", two)];
    let archive = |name: &str, files: &[String]| {
        let path = here.path(name).display().to_string();
        let zip = ["-m", "zipfile", "-c", &path];
        let status = Command::new("python3").args(zip).args(files).status().expect("Python");
        assert!(status.success());
        path
    };
    let (both, single) = (archive("both.npz", &files), archive("single.npz", &files[..1]));
    map(&single, b"").ok();
    assert_eq!(read_npy(&here.read("out.npy")).1, [25.0, 36.0]);
    map(&format!("{both}:depths"), b"").ok();
    assert_eq!(read_npy(&here.read("out.npy")).1, [49.0]);
    map(&both, b"").fails(2, &["holds 2 arrays (heights, depths)", "both.npz:heights"]);
    map(&format!("{both}:widths"), b"").fails(2, &["no array widths", "heights, depths"]);
    let broken = here.file("broken.npz", "no archive");
    map(&broken, b"").fails(2, &["broken.npz", "no .npz file"]);
    let twice = ["map", &kernel, "-", "-", "-o", &out];
    pool.run_with(&twice, b"").fails(2, &["reads one input array"]);
    // A program reads stdin, whether it is named or not.
    let done = pool.run_with(&["exec", program(), "-"], b"loud").ok();
    assert_eq!(done.stdout, b"LOUD");
    pool.run(&["exec", program(), "-", &kernel, "-o", &out]).fails(2, &["stdin"]);
}

/// Of what comes through a pipe, the client keeps the beginning in memory only.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_may_bring_more_than_fits_in_memory() {
    let pool = Pool::start();
    let here = Folder::new();
    let kernel = here.file("square.wgsl", SQUARE);
    let numbers: Vec<u8> = (0..40_u32 << 20).flat_map(|at| (at / 3).to_le_bytes()).collect();
    let head = npy(&format!("({},)", numbers.len() / 4), &[]);
    let bytes = [head, numbers].concat();
    let mut client = pool.begin(&["map", &kernel, "-", "--detach"], &bytes);
    let mut most = 0;
    while !client.is_over() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", client.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        most = most.max(kib.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client.end().ok();
    assert!(most > 0 && most < 130 << 10, "160 MiB came, and {} MiB were used", most >> 10);
    let sent = &pool.ask("GET /api/v1/jobs/1/inputs", "")["inputs"][0];
    let numbers = &bytes[bytes.len() - (160 << 20)..];
    assert_eq!(sent["size"], numbers.len());
    assert_eq!(sent["hash"], blake3::hash(numbers).to_hex().as_str());
}
