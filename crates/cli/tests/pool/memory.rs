//! What a donor lends of the machine's memory, and who keeps to it.

use std::path::Path;

use crate::material::{npy, program};
use crate::onnx_file::Graph;
use crate::world::Pool;

#[test]
fn a_size_that_is_none_is_said_so() {
    let pool = Pool::start();
    let link = "http://127.0.0.1:1/join#token";
    for bad in ["4", "lots", "1.5G"] {
        pool.run(&["join", link, "--memory", bad]).fails(2, &["--memory", bad, "512M or 4G"]);
    }
    pool.run(&["join", link, "--memory", "0M"]).fails(2, &["--memory", "at least 1M"]);
}

#[test]
fn programs_run_at_once_within_the_memory_lent() {
    let pool = Pool::start();
    let _node = pool.node("small", &["--no-gpu", "--cpus", "4", "--memory", "512M"]);
    let small = pool.seen("small").expect("the node");
    assert_eq!((&small["memory"], &small["cpuSlots"]), (&(512u64 << 20).into(), &4.into()));
    let engine = &small["engines"][0];
    assert_eq!(engine["name"], "wasi", "{small}");
    let table = String::from_utf8(pool.run(&["nodes"]).ok().stdout).expect("text");
    assert!(table.contains("MEMORY") && table.contains("512"), "{table}");
    let input: String = (0..200).map(|i| format!("line {i}\n")).collect();
    let done = pool.run_with(&["exec", program(), "--lines"], input.as_bytes()).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.to_uppercase());
    // With 64 MiB for the files that it may write.
    let args = ["exec", program(), "--lines", "--limit-memory", "600"];
    pool.run_with(&args, b"a\n").fails(2, &["664 MiB of memory", "at most 512 MiB of memory"]);
}

#[test]
fn a_model_that_no_node_has_the_memory_for_can_be_split() {
    let pool = Pool::start();
    let key = pool.key.clone();
    let flags = ["--no-gpu", "--key", &key, "--memory", "12M"];
    let _nodes = ["a", "b"].map(|name| pool.node(name, &flags));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10");
    let model = examples.join("cifar10.onnx").display().to_string();
    let words = ["MiB of memory", "no node here lends more than 12 MiB", "--split auto"];
    pool.run(&["model", "add", &model]).fails(2, &words);
    pool.run(&["model", "add", &model, "--split", "2", "--shape", "image=1x3x32x32"]).ok();
    let zeros = pool.folder.file("zeros.npy", npy("(1, 3, 32, 32)", &[0.0; 3072]));
    pool.wait("both have their parts", || {
        let all = pool.run(&["services", "--json"]).ok().json();
        all["services"][0]["crew"]["ready"] == true
    });
    let input = format!("image={zeros}");
    let told = pool.run(&["infer", "cifar10", "--input", &input]).ok().stdout;
    assert!(String::from_utf8_lossy(&told).contains("float32[1x10]"), "{told:?}");
}

/// The model says nothing of its shapes, so nobody knows before what a run takes.
#[test]
fn a_run_that_needs_more_than_is_lent_is_refused_with_both_numbers_or_runs_elsewhere() {
    let pool = Pool::start();
    let key = pool.key.clone();
    let node = |name: &str, memory: &str| {
        pool.node(name, &["--no-gpu", "--key", &key, "--memory", memory])
    };
    let _small = node("small", "160M");
    let nodes: &[_] = &[("Add", &["a", "b"][..], "all"), ("ReduceMax", &["all"][..], "most")];
    let inputs: &[(&str, &[u8])] = &[("a", &[0, 1]), ("b", &[1, 0])];
    let table = Graph { nodes, inputs, outputs: &[("most", &[1, 1])] }.file();
    let table = pool.folder.file("table.onnx", table);
    let side = 8192;
    let a = pool.folder.file("a.npy", npy(&format!("({side}, 1)"), &vec![1.0; side]));
    let b = pool.folder.file("b.npy", npy(&format!("(1, {side})"), &vec![1.0; side]));
    let ask = |model: &str| {
        let (a, b) = (format!("a={a}"), format!("b={b}"));
        pool.run(&["infer", model, "--input", &a, "--input", &b])
    };
    pool.run(&["model", "add", &table, "--name", "alone"]).ok();
    ask("alone").fails(1, &["needs 257 MiB", "159 MiB are left of the 160 MiB lent here"]);
    pool.run(&["model", "rm", "alone"]).ok();
    let _large = node("large", "2G");
    pool.run(&["model", "add", &table, "--name", "both", "--least", "2"]).ok();
    pool.wait("both have it", || {
        let all = pool.run(&["services", "--json"]).ok().json();
        let ready = all["services"][0]["replicas"].as_array().cloned().unwrap_or_default();
        ready.iter().filter(|replica| replica["ready"] == true).count() == 2
    });
    for _ in 0..3 {
        ask("both").ok();
    }
}
