//! A device that lies, among honest ones: nothing it says reaches a result, and it is found out.

use crate::material::{npy, program};
use crate::proxy::Proxy;
use crate::world::{Folder, Pool, Process};

const LINES: u64 = 60;

/// Numbers far enough from each other that one wrong bit is no rounding.
const POLYNOMIAL: &str = "
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&output) { return; }
    let x = input[id.x];
    output[id.x] = sin(x) * 3.0 + x * x;
}";

fn lines() -> String {
    (0..LINES).map(|i| format!("line {i}\n")).collect()
}

/// Honest nodes: enough to decide against one liar. By trust that is one of the operator's own beside a
/// stranger; a vote of two wants a lead of two, which three strangers have.
fn honest(pool: &Pool, verify: &str, flags: &[&str]) -> [Process; 3] {
    let own = [&["--key", &pool.key], flags].concat();
    let first = if verify == "adaptive" { &own } else { flags };
    [("one", first), ("two", flags), ("three", flags)].map(|(name, flags)| pool.node(name, flags))
}

/// Runs jobs until the liar is barred from this kind of work. Every result must be right.
fn until_barred(pool: &Pool, lane: &str, mut run: impl FnMut()) {
    pool.wait("the liar is barred", || {
        run();
        let liar = pool.seen("liar").expect("it stays connected");
        liar["trust"][lane]["barred"] == true
    });
    for honest in ["one", "two", "three"] {
        let trust = pool.seen(honest).expect("a node")["trust"][lane].clone();
        assert_eq!(trust["wrong"], 0, "{honest} is believed: {trust}");
    }
}

fn programs(verify: &str) {
    let pool = Pool::start();
    let flags = ["--no-gpu", "--cpus", "1"];
    let _honest = honest(&pool, verify, &flags);
    let proxy = Proxy::lies(&pool.join, 0);
    let _liar = pool.node_by(&proxy.link, "liar", &flags);
    let args = ["exec", program(), "--lines", "--unit", "2", "--verify", verify];
    until_barred(&pool, "cpu", || {
        let done = pool.run_with(&args, lines().as_bytes()).ok();
        // What one process makes of the lines, without any pool.
        assert_eq!(String::from_utf8_lossy(&done.stdout), lines().to_uppercase());
    });
    // Messages, of which one may hold several answers.
    assert!(proxy.changed() >= 1, "it answered, and lied");
    let liar = pool.seen("liar").expect("it stays connected")["id"].clone();
    assert!(pool.explain(&format!("node:{liar}")).contains("wrong"), "explained in words");
    let table = String::from_utf8(pool.run(&["nodes"]).ok().stdout).expect("text");
    assert!(table.contains("barred"), "{table}");
}

#[test]
fn a_program_s_wrong_answers_are_found_by_trust() {
    programs("adaptive");
}

#[test]
fn a_program_s_wrong_answers_are_outvoted() {
    programs("quorum:2");
}

fn kernels(verify: &str) {
    let here = Folder::new();
    let kernel = here.file("polynomial.wgsl", POLYNOMIAL);
    let values: Vec<f32> = (0..20_000).map(|i| i as f32 * 0.001).collect();
    let input = here.file("in.npy", npy("(20000,)", &values));
    let map = |pool: &Pool, out: &str, flags: &[&str]| {
        let path = here.path(out).display().to_string();
        pool.run(&[&["map", &kernel, &input, "-o", &path], flags].concat()).ok();
        here.read(out)
    };
    // One honest node alone, in one unit.
    let (alone, _node) = Pool::with_node();
    let wanted = map(&alone, "alone.npy", &["--verify", "none", "--unit", "20000"]);
    drop((alone, _node));
    let pool = Pool::start();
    let _honest = honest(&pool, verify, &["--cpus", "0"]);
    // The lowest bit of a float: well within any tolerance, but all these GPUs round alike.
    let proxy = Proxy::lies(&pool.join, 3);
    let _liar = pool.node_by(&proxy.link, "liar", &["--cpus", "0"]);
    let right = || {
        assert_eq!(map(&pool, "out.npy", &["--verify", verify, "--unit", "500"]), wanted);
    };
    match verify {
        "adaptive" => until_barred(&pool, "gpu", right),
        // Among strangers so little makes nobody a liar: they may be of another class than they say.
        _ => pool.wait("the liar is outvoted", || {
            right();
            proxy.changed() >= 3
        }),
    }
    // Messages, of which one may hold several answers.
    assert!(proxy.changed() >= 1, "it answered, and lied");
}

#[test]
fn a_kernel_s_wrong_bits_are_found_by_trust() {
    kernels("adaptive");
}

#[test]
fn a_kernel_s_wrong_bits_are_outvoted() {
    kernels("quorum:2");
}
