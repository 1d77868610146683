//! What a donor lends of the machine's memory, and who keeps to it.

use crate::material::program;
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
    let args = ["exec", program(), "--lines", "--limit-memory", "600"];
    pool.run_with(&args, b"a\n").fails(2, &["600 MiB of memory", "at most 512 MiB of memory"]);
}
