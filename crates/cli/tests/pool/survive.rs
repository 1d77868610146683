//! Nodes and coordinators killed in the middle, and work that never ends.

use std::sync::OnceLock;

use crate::material::{npy, program, read_npy};
use crate::world::{Folder, Pool};

const LINES: u64 = 40;

fn lines() -> String {
    (0..LINES).map(|i| format!("{i}\n")).collect()
}

/// What one undisturbed node makes of the lines.
fn undisturbed() -> &'static [u8] {
    static ANSWERS: OnceLock<Vec<u8>> = OnceLock::new();
    ANSWERS.get_or_init(|| {
        let (pool, _node) = Pool::with_node();
        let args = ["exec", program(), "--lines", "--", "work"];
        pool.run_with(&args, lines().as_bytes()).ok().stdout
    })
}

#[test]
fn a_node_killed_in_the_middle_changes_nothing() {
    let pool = Pool::start();
    let mut doomed = pool.node("doomed", &["--no-gpu", "--cpus", "1"]);
    let _other = pool.node("other", &["--no-gpu", "--cpus", "1"]);
    let args = ["exec", program(), "--lines", "--unit", "1", "--", "work"];
    let job = pool.begin(&args, lines().as_bytes());
    pool.until_done(3);
    doomed.kill();
    let done = job.end().ok();
    assert_eq!(done.stdout, undisturbed());
}

#[test]
fn a_coordinator_killed_in_the_middle_goes_on_where_it_was() {
    let (mut pool, mut node) = Pool::with_node();
    let args = ["exec", program(), "--lines", "--unit", "1", "--", "work"];
    let job = pool.begin(&args, lines().as_bytes());
    pool.until_done(3);
    pool.crash_and_restart();
    let done = job.end().ok();
    assert_eq!(done.stdout, undisturbed());
    assert!(node.is_alive(), "the node came back by itself");
    let job = pool.job(1).expect("the job");
    assert_eq!((job["state"].as_str(), job["itemsDone"].as_u64()), (Some("done"), Some(LINES)));
}

/// A kernel that turns so many times. Lavapipe leaves loops after 65,535 turns, so each turn is
/// long.
fn turning(turns: u32) -> String {
    let step = "x = sin(x) + cos(x * 1.7);\n".repeat(400);
    format!(
        "@group(0) @binding(0) var<storage, read> input: array<f32>;
        @group(0) @binding(1) var<storage, read_write> output: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            if id.x >= arrayLength(&output) {{ return; }}
            var x = input[id.x];
            for (var i = 0u; i < {turns}u; i++) {{ {step} }}
            output[id.x] = x;
        }}"
    )
}

#[test]
fn a_kernel_that_never_ends_fails_its_job_and_the_node_lives() {
    let (pool, mut node) = Pool::with_node();
    let here = Folder::new();
    let endless = here.file("endless.wgsl", turning(1 << 30));
    let input = here.file("in.npy", npy("(65536,)", &[1.0; 65536]));
    let out = here.path("out.npy").display().to_string();
    let args = ["map", &endless, &input, "-o", &out, "--limit-seconds", "1", "--unit", "65536"];
    let done = pool.run(&args).fails(1, &[]);
    // A software GPU may count the turns before the time is over.
    let words = ["time limit", "ends loops after"];
    assert!(words.iter().any(|words| done.stderr.contains(words)), "{}", done.stderr);
    assert!(!here.path("out.npy").exists(), "no half result");
    let good = here.file("good.wgsl", turning(1));
    pool.run(&["map", &good, &input, "-o", &out]).ok();
    assert_eq!(read_npy(&here.read("out.npy")).1.len(), 65536);
    assert!(node.is_alive());
}

#[test]
fn a_cancelled_kernel_makes_room_for_the_next_job() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let endless = here.file("endless.wgsl", turning(1 << 30));
    let input = here.file("in.npy", npy("(65536,)", &[1.0; 65536]));
    let out = here.path("out.npy").display().to_string();
    let doomed = pool.begin(&["map", &endless, &input, "-o", &out, "--unit", "65536"], b"");
    pool.until(|job| job["unitsLeased"].as_u64() > Some(0));
    pool.run(&["cancel", "1"]).ok();
    doomed.end().fails(1, &["cancelled"]);
    let good = here.file("good.wgsl", turning(1));
    pool.run(&["map", &good, &input, "-o", &out]).ok();
}

#[cfg(target_os = "linux")]
#[test]
fn a_gpu_process_that_dies_is_started_again() {
    let (pool, node) = Pool::with_node();
    let here = Folder::new();
    let slow = here.file("slow.wgsl", turning(12));
    let input = here.file("in.npy", npy("(65536,)", &[1.0; 65536]));
    let out = here.path("out.npy").display().to_string();
    let job = pool.begin(&["map", &slow, &input, "-o", &out, "--unit", "4096"], b"");
    pool.until_done(1);
    for child in node.children() {
        let status = std::process::Command::new("kill").args(["-9", &child.to_string()]).status();
        assert!(status.expect("kill").success());
    }
    job.end().ok();
    assert_eq!(read_npy(&here.read("out.npy")).1.len(), 65536);
}

#[test]
fn programs_that_misbehave_name_their_input_and_the_limit() {
    let (pool, mut node) = Pool::with_node();
    let lines: String = (0..10).map(|i| format!("{i}\n")).collect();
    let exec = |flags: &[&str], mode: &str| {
        let args = [&["exec", program(), "--lines"], flags, &["--", mode]].concat();
        pool.run_with(&args, lines.as_bytes())
    };
    exec(&["--limit-seconds", "1"], "spin").fails(1, &["time limit", "line 8"]);
    exec(&["--stop-on-error"], "trap").fails(1, &["line 4", "no threes"]);
    exec(&["--stop-on-error"], "exit").fails(1, &["exit code 9", "line 6", "five is too much"]);
    exec(&["--limit-memory", "64"], "grow").fails(1, &["line"]);
    exec(&["--limit-output", "1"], "flood").fails(1, &["output limit", "line"]);
    let done = exec(&[], "upper").ok();
    assert_eq!(done.stdout, lines.as_bytes());
    assert!(node.is_alive());
}

#[cfg(unix)]
#[test]
fn ctrl_c_asks_the_job_to_stop() {
    let (pool, _node) = Pool::with_node();
    let args = ["exec", program(), "--lines", "--unit", "1", "--", "work"];
    let job = pool.begin(&args, lines().repeat(20).as_bytes());
    pool.until_done(1);
    let status = std::process::Command::new("kill").args(["-INT", &job.id().to_string()]).status();
    assert!(status.expect("kill").success());
    job.end().fails(130, &["stop"]);
    pool.until(|job| job["state"] == "cancelled");
}
