//! What members of a crew say to each other by relay is sealed: the coordinator's memory does not have it.

use std::fs::File;
use std::os::unix::fs::FileExt;

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

/// Where pages have another size the search finds nothing at all, and the test fails.
const PAGE: u64 = 4096;
/// In the last byte of a page's entry: it is in memory, or swapped out.
const IS_THERE: u8 = 0b1100_0000;

fn keeps_secrets(pool: &Pool) {
    let nodes = [pool.node("n0", &["--no-direct"]), pool.node("n1", &["--no-direct"])];
    let here = Folder::new();
    let kernel = here.file("marked.wgsl", MARKED);
    let args = ["sim", &kernel, "--grid", "512x64", "--steps", "100000000", "--keep-every", "0"];
    let job = pool.begin(&[&args[..], &["--members", "2"]].concat(), b"");
    pool.until(|job| job["sim"]["step"].as_u64() > Some(100));
    let marker = 2654435769_u32.wrapping_mul(2246822519).to_le_bytes();
    // Some times, because what is looked for comes and goes.
    for _ in 0..5 {
        let step = pool.job(1).and_then(|job| job["sim"]["step"].as_u64());
        assert_eq!(found(pool.process.id(), marker), 0, "in the coordinator's memory");
        pool.until(|job| job["sim"]["step"].as_u64() > step.map(|step| step + 20));
    }
    let in_nodes: usize = nodes.iter().map(|node| found(node.id(), marker)).sum();
    assert!(in_nodes > 0, "the search finds nothing where it must");
    pool.run(&["cancel", "1"]).ok();
    job.end().fails(1, &["cancelled"]);
}

/// In how many places the word stands at least eight times in a row in the memory of a process of this test.
fn found(process: u32, word: [u8; 4]) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("its regions");
    let open = |name: &str| File::open(format!("/proc/{process}/{name}")).expect("its memory");
    let (memory, present) = (open("mem"), open("pagemap"));
    let mut count = 0;
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').expect("a region");
        // What cannot be written to holds no data; the kernel's own regions cannot be read.
        if !rest.starts_with("rw") || line.ends_with("[vvar]") {
            continue;
        }
        let (start, end) = range.split_once('-').expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        let pages = number(start) / PAGE..number(end) / PAGE;
        let mut entries = vec![0; 8 * (pages.end - pages.start) as usize];
        if present.read_exact_at(&mut entries, 8 * pages.start).is_err() {
            continue;
        }
        // Pages that were never touched are most of all, and reading them would make them.
        let touched =
            entries.chunks_exact(8).zip(pages).filter(|(entry, _)| entry[7] & IS_THERE != 0);
        let touched: Vec<u64> = touched.map(|(_, page)| page).collect();
        for run in touched.chunk_by(|one, next| one + 1 == *next) {
            let mut bytes = vec![0; run.len() * PAGE as usize];
            if memory.read_exact_at(&mut bytes, run[0] * PAGE).is_ok() {
                count += occurrences(&bytes, word);
            }
        }
    }
    count
}

/// Eight words in a row are 32 bytes, so sixteen of them stand at a multiple of sixteen, beginning with any byte of the word.
fn occurrences(bytes: &[u8], word: [u8; 4]) -> usize {
    let twice = [word, word].concat();
    let turned = [0, 1, 2, 3].map(|by| twice[by..by + 4].repeat(4));
    let is_found = |piece: &&[u8]| turned.iter().any(|turned| *piece == turned);
    bytes.chunks_exact(16).filter(is_found).count()
}
