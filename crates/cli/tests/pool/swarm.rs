//! Blobs that nodes give each other: the coordinator gives little more than one copy, whatever happens to nodes.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::material::program;
use crate::process::{Process, Running};
use crate::world::{Folder, Pool};

const MIB: u64 = 1 << 20;
const FLAGS: [&str; 3] = ["--no-gpu", "--cpus", "1"];

/// Bytes that no other test has, none of them the same as its neighbours.
fn weights(size: u64, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = (0..size / 8).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state ^ state >> 29).to_le_bytes()
    });
    words.collect()
}

/// A pool, and a folder with one large file that a program finds.
struct Swarm {
    pool: Pool,
    here: Folder,
    size: u64,
    name: String,
}

impl Swarm {
    fn new(size: u64, seed: u64) -> Swarm {
        let (pool, here) = (Pool::start(), Folder::new());
        std::fs::create_dir_all(here.path("model")).expect("a folder");
        let bytes = weights(size, seed);
        here.file("model/weights.bin", &bytes);
        Swarm { pool, here, size, name: blake3::hash(&bytes).to_hex().to_string() }
    }

    fn node(&self, name: &str) -> Process {
        self.pool.node(name, &FLAGS)
    }

    /// Every node that gets a line needs the file first.
    fn begin(&self, lines: u64) -> Running {
        let input: String = (0..lines).map(|i| format!("{i}\n")).collect();
        let model = self.here.path("model").display().to_string();
        let args = ["exec", program(), "--lines", "--unit", "1", "--folder", &model, "--", "work"];
        self.pool.begin(&args, input.as_bytes())
    }

    fn shelf(&self, node: &str) -> PathBuf {
        let data = self.pool.folder.path(node);
        let files = std::fs::read_dir(&data).into_iter().flatten().flatten();
        let mut names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        let name = names.find(|name| name.starts_with("shelf-1-"));
        data.join(name.unwrap_or_else(|| "no shelf yet".into()))
    }

    fn has(&self, node: &str) -> bool {
        self.shelf(node).join(&self.name).exists()
    }

    fn blobs(&self) -> Value {
        self.pool.ask("GET /api/v1/pool", "")["blobs"].take()
    }
}

#[test]
fn four_nodes_give_each_other_most_of_what_they_need() {
    let swarm = Swarm::new(32 * MIB, 1);
    let names = ["a", "b", "c", "d"];
    let _nodes = names.map(|name| swarm.node(name));
    let job = swarm.begin(60);
    swarm.pool.wait("all have the file", || names.iter().all(|name| swarm.has(name)));
    job.end().ok();
    let blobs = swarm.blobs();
    let (served, exchanged) = (blobs["served"].as_u64(), blobs["exchanged"].as_u64());
    // Little more than one copy where ways open soon; a busy machine is slow to open them.
    assert!(served < Some(4 * swarm.size), "{blobs}");
    assert!(exchanged > Some(0), "{blobs}");
    for name in names {
        let bytes = std::fs::read(swarm.shelf(name).join(&swarm.name)).expect("the file");
        assert_eq!(blake3::hash(&bytes).to_hex().as_str(), swarm.name);
    }
}

#[test]
fn a_node_killed_in_the_middle_goes_on_with_what_it_had() {
    let swarm = Swarm::new(96 * MIB, 2);
    let _others = ["a", "b", "c"].map(|name| swarm.node(name));
    let mut doomed = swarm.node("doomed");
    let job = swarm.begin(200);
    let part = || swarm.shelf("doomed").join(format!("{}.part", swarm.name));
    let stored = || part().metadata().is_ok_and(|meta| meta.blocks() * 512 >= 3 * MIB);
    swarm.pool.wait("some pieces are stored", stored);
    doomed.kill();
    assert!(!swarm.has("doomed"), "it was killed too late to see anything");
    let again = swarm.node("doomed");
    let fetches = again.line(|line| line["event"] == "fetches");
    assert_eq!(fetches["bytes"], swarm.size);
    assert!(fetches["here"].as_u64() >= Some(2 * MIB), "{fetches}");
    swarm.pool.wait("it has the file", || swarm.has("doomed"));
    job.end().ok();
}

#[test]
fn a_node_that_gives_wrong_bytes_is_named_and_everybody_has_the_right_ones() {
    let swarm = Swarm::new(16 * MIB, 3);
    let _liar = swarm.node("liar");
    swarm.begin(1).end().ok();
    assert!(swarm.has("liar"));
    let file = swarm.shelf("liar").join(&swarm.name);
    let mut bytes = std::fs::read(&file).expect("the file");
    bytes.iter_mut().step_by(MIB as usize).for_each(|byte| *byte ^= 1);
    // Its own hashes of the pieces too: else it would see that they are wrong and give none.
    let marks: Vec<u8> =
        bytes.chunks(MIB as usize).flat_map(|piece| *blake3::hash(piece).as_bytes()).collect();
    std::fs::write(file.with_extension("pieces"), marks).expect("changed");
    std::fs::write(&file, bytes).expect("changed");
    // Until somebody has found a way to the liar before the coordinator gave it everything.
    let (mut nodes, mut names) = (Vec::new(), Vec::new());
    let wrong = |name: &str| {
        swarm.pool.seen(name).map_or(0, |node| node["gaveWrong"].as_u64().unwrap_or(0))
    };
    while wrong("liar") == 0 {
        assert!(names.len() < 12, "nobody got anything from the liar");
        let more = (0..2).map(|i| format!("n{}", names.len() + i)).collect::<Vec<_>>();
        nodes.extend(more.iter().map(|name| swarm.node(name)));
        names.extend(more);
        let job = swarm.begin(60);
        swarm.pool.wait("all have the file", || names.iter().all(|name| swarm.has(name)));
        job.end().ok();
    }
    for name in &names {
        let bytes = std::fs::read(swarm.shelf(name).join(&swarm.name)).expect("the file");
        assert_eq!(blake3::hash(&bytes).to_hex().as_str(), swarm.name);
        assert_eq!(wrong(name), 0, "{name} is honest");
    }
}
