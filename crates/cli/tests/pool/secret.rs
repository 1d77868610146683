//! What members of a crew say to each other by relay is sealed: the coordinator's memory does not have it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::world::{Folder, Pool};

/// Cells that all hold the marker, made by multiplying at run time, so that it stands in no text.
const MARKED: &str = "
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    let zero = min(id.x, params.step);
    next[id.y * params.width + id.x] = (zero + 2654435769u) * (zero + 2246822519u);
}

@compute @workgroup_size(8, 8)
fn keep(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    let above = (max(id.y, 1u) - 1u) * params.width + id.x;
    let here = id.y * params.width + id.x;
    next[here] = max(state[here], state[above]);
}
";

#[test]
fn the_relay_never_has_what_members_say_by_socket() {
    let pool = Pool::with("127.0.0.1:0", &["--no-quic"]);
    keeps_secrets(&pool);
    assert_eq!(pool.relay()["quic"]["in"], 0);
}

#[test]
fn the_relay_never_has_what_members_say_by_quic() {
    let pool = Pool::start();
    keeps_secrets(&pool);
    let relay = pool.relay();
    assert!(relay["quic"]["in"].as_u64() > relay["socket"]["in"].as_u64(), "{relay}");
    assert!(relay["quic"]["out"].as_u64() > relay["socket"]["out"].as_u64(), "{relay}");
}

fn keeps_secrets(pool: &Pool) {
    let nodes = [pool.node("n0", &["--no-direct"]), pool.node("n1", &["--no-direct"])];
    let here = Folder::new();
    let kernel = here.file("marked.wgsl", MARKED);
    let args = ["sim", &kernel, "--grid", "512x64", "--steps", "100000000", "--keep-every", "0"];
    let job = pool.begin(&[&args[..], &["--members", "2"]].concat(), b"");
    pool.until(|job| job["sim"]["step"].as_u64() > Some(100));
    let word = 2654435769_u32.wrapping_mul(2246822519).to_le_bytes();
    let marker = word.repeat(8);
    // Some times, because what is looked for comes and goes.
    for _ in 0..5 {
        let step = pool.job(1).and_then(|job| job["sim"]["step"].as_u64());
        assert_eq!(found(pool.process.id(), &marker), 0, "in the coordinator's memory");
        pool.until(|job| job["sim"]["step"].as_u64() > step.map(|step| step + 20));
    }
    let in_nodes: usize = nodes.iter().map(|node| found(node.id(), &marker)).sum();
    assert!(in_nodes > 0, "the search finds nothing where it must");
    pool.run(&["cancel", "1"]).ok();
    job.end().fails(1, &["cancelled"]);
}

/// How often bytes stand in the memory of a process of this test.
fn found(process: u32, wanted: &[u8]) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("its regions");
    let mut memory = File::open(format!("/proc/{process}/mem")).expect("its memory");
    let mut count = 0;
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').expect("a region");
        // What cannot be written to holds no data; the kernel's own regions cannot be read.
        if !rest.starts_with("rw") || line.ends_with("[vvar]") {
            continue;
        }
        let (start, end) = range.split_once('-').expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        let (start, end) = (number(start), number(end));
        let mut bytes = vec![0; (end - start) as usize];
        if memory.seek(SeekFrom::Start(start)).is_err() || memory.read_exact(&mut bytes).is_err() {
            continue;
        }
        count += occurrences(&bytes, wanted);
    }
    count
}

fn occurrences(bytes: &[u8], wanted: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(found) = bytes[at..]
        .windows(wanted.len())
        .position(|window| window[0] == wanted[0] && window == wanted)
    {
        count += 1;
        at += found + wanted.len();
    }
    count
}
