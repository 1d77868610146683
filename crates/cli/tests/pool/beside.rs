//! Beside the coordinator bytes go from file to file: no socket carries them, and nobody's sudden end spoils them.

use crate::material::{npy, read_npy};
use crate::world::{Folder, Pool, Process};

/// Takes a while, so that there is something to kill.
const SLOW: &str = "
    @group(0) @binding(0) var<storage, read> input: array<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x >= arrayLength(&output) { return; }
        var x = input[id.x];
        for (var i = 0; i < 400; i++) { x = fract(x * 1.5 + 0.25); }
        output[id.x] = x;
    }";
const ITEMS: usize = 2 << 20;
/// Units of 1 MiB.
const UNIT: &str = "262144";

/// A node of the operator's in the coordinator's own folder, as `shoal up` starts one.
fn neighbour(pool: &Pool) -> Process {
    pool.node_by(&pool.url, "data", &["--key", &pool.key])
}

fn array(here: &Folder) -> String {
    let numbers: Vec<f32> = (0..ITEMS).map(|at| at as f32 / ITEMS as f32).collect();
    here.file("in.npy", npy(&format!("({ITEMS},)"), &numbers))
}

/// Bytes that a process has read from and written to files and pipes so far.
#[cfg(target_os = "linux")]
fn moved(process: u32) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{process}/io")).expect("its counts");
    let count = |name: &str| {
        let line = counts.lines().find_map(|line| line.strip_prefix(name)).expect("a count");
        line.trim().parse::<u64>().expect("a number")
    };
    count("rchar:") + count("wchar:")
}

#[cfg(target_os = "linux")]
#[test]
fn beside_the_coordinator_arrays_do_not_pass_through_it() {
    let pool = Pool::start();
    let node = neighbour(&pool);
    let here = Folder::new();
    let (kernel, input) = (here.file("slow.wgsl", SLOW), array(&here));
    let (near, far) = (here.path("near.npy"), here.path("far.npy"));
    let coordinator = || moved(pool.process.id());
    let before = coordinator();
    let args = ["map", &kernel, &input, "--unit", UNIT, "-o"];
    pool.run(&[&args[..], &[&near.display().to_string()]].concat()).ok();
    let quiet = coordinator() - before;
    assert!(quiet < 2 << 20, "of 16 MiB {quiet} bytes passed through the coordinator");
    drop(node);
    // Another folder, so by HTTP. Its hash is known by now, so that only what comes back counts.
    let _stranger = pool.node("elsewhere", &[]);
    let before = coordinator();
    let data = here.path("data").display().to_string();
    let server = ["--url", &pool.url, "--key", &pool.key, "--data", &data];
    pool.run(&[&args[..], &[&far.display().to_string()], &server[..]].concat()).ok();
    let loud = coordinator() - before;
    assert!(loud > 16 << 20, "{loud} bytes: then what is counted here says nothing");
    assert!(std::fs::read(near).expect("a result") == std::fs::read(far).expect("a result"));
}

#[test]
fn arrays_come_home_whole_whoever_is_killed_beside_them() {
    let mut pool = Pool::start();
    let mut node = neighbour(&pool);
    let here = Folder::new();
    let (kernel, input) = (here.file("slow.wgsl", SLOW), array(&here));
    let out = here.path("out.npy").display().to_string();
    let args = ["map", &kernel, &input, "--unit", UNIT, "-o", &out];
    let job = pool.begin(&args, b"");
    pool.until_done(UNIT.parse().expect("a number"));
    pool.crash_and_restart();
    node.kill();
    let _next = neighbour(&pool);
    job.end().ok();
    let killed = read_npy(&here.read("out.npy"));
    assert_eq!((killed.0.as_str(), killed.1.len()), ("(2097152,)", ITEMS));
    pool.run(&args).ok();
    assert!(killed == read_npy(&here.read("out.npy")));
    let drafts = std::fs::read_dir(pool.folder.path("data/blobs/partial")).expect("a folder");
    assert_eq!(drafts.count(), 0);
}
