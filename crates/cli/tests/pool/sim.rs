//! Simulations that several processes compute together, disturbed in every way: the field is the same.

use std::sync::OnceLock;

use serde_json::Value;

use crate::material::{example, read_npy};
use crate::process::signal;
use crate::world::{Folder, Pool, Process, Running};

/// Waves on a torus: each cell has a height and a speed; a poke lifts them. Sums and products only, so that the same kind of device
/// gives the same bits.
const WAVES: &str = "
struct Params { width: u32, height: u32, first_row: u32, rows: u32, step: u32, stiffness: f32,
    brush: vec2<f32>, poke: vec4<f32> }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> next: array<vec2<f32>>;

fn at(x: u32, y: u32) -> vec2<f32> { return state[y * params.width + x]; }

@compute @workgroup_size(8, 8)
fn init(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    let row = (params.first_row + id.y) % params.height;
    let spot = f32((id.x * 7u + row * 13u) % 31u) * 0.03125;
    next[id.y * params.width + id.x] = vec2<f32>(spot, 0.0);
}

@compute @workgroup_size(8, 8)
fn swing(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.width || id.y >= params.rows { return; }
    let left = (id.x + params.width - 1u) % params.width;
    let right = (id.x + 1u) % params.width;
    let up = max(id.y, 1u) - 1u;
    let down = min(id.y + 1u, params.rows - 1u);
    let here = at(id.x, id.y);
    let around = at(left, id.y).x + at(right, id.y).x + at(id.x, up).x + at(id.x, down).x;
    let speed = here.y + (around - 4.0 * here.x) * params.stiffness;
    let row = (params.first_row + id.y) % params.height;
    let far = abs(f32(id.x) - params.poke.x) + abs(f32(row) - params.poke.y);
    let push = select(0.0, params.brush.y, far < params.brush.x);
    next[id.y * params.width + id.x] = vec2<f32>(here.x + speed * 0.25 + push, speed);
}
";
const GRID: &str = "160x120";
/// Long enough that there is a middle, on any machine.
const STEPS: &str = "4000";
const KEEP: &str = "250";

/// A pool with so many nodes.
pub(crate) struct Crew {
    pub(crate) pool: Pool,
    pub(crate) nodes: Vec<Process>,
    here: Folder,
}

impl Crew {
    pub(crate) fn of(count: usize, flags: &[&str]) -> Crew {
        Crew::by(count, |pool, n| pool.node(&format!("n{n}"), flags))
    }

    /// Nodes that came in other ways.
    pub(crate) fn by(count: usize, join: impl Fn(&Pool, usize) -> Process) -> Crew {
        let pool = Pool::start();
        let nodes = (0..count).map(|n| join(&pool, n)).collect();
        Crew { pool, nodes, here: Folder::new() }
    }

    /// Starts the waves on so many members; they will be in `out.npy`.
    pub(crate) fn begin(&self, members: usize) -> Running {
        self.begin_with(members, KEEP, &["--param", "stiffness=0.2"])
    }

    /// `keep`: steps between checkpoints.
    pub(crate) fn begin_with(&self, members: usize, keep: &str, flags: &[&str]) -> Running {
        let kernel = self.here.file("waves.wgsl", WAVES);
        let (out, members) = (self.out(), members.to_string());
        let args = ["sim", &kernel, "--grid", GRID, "--steps", STEPS, "--keep-every", keep];
        let more = ["--members", &members, "-o", &out];
        self.pool.begin(&[&args[..], &more[..], flags].concat(), b"")
    }

    fn out(&self) -> String {
        self.here.path("out.npy").display().to_string()
    }

    pub(crate) fn field(&self) -> Vec<u8> {
        self.here.read("out.npy")
    }

    /// Waits until job 1 works with so many members and has a checkpoint behind it.
    pub(crate) fn until_kept(&self, members: usize) {
        self.pool.until(|job| {
            let crew = &job["sim"]["crew"];
            let count = crew["members"].as_array().map_or(0, Vec::len);
            count == members && crew["keptStep"].as_u64() > Some(0)
        });
    }

    /// The place among our nodes of the crew's member of that rank.
    pub(crate) fn seated(&self, rank: usize) -> usize {
        let job = self.pool.job(1).expect("the job");
        let name = job["sim"]["crew"]["members"][rank]["name"].as_str().expect("a name").to_owned();
        name.trim_start_matches('n').parse().expect("one of ours")
    }

    /// What the coordinator says of what happened to the crew.
    fn story(&self) -> String {
        self.pool.explain("1")
    }
}

/// What one undisturbed node makes of it.
pub(crate) fn undisturbed() -> &'static [u8] {
    static FIELD: OnceLock<Vec<u8>> = OnceLock::new();
    FIELD.get_or_init(|| {
        let crew = Crew::of(1, &[]);
        crew.begin(1).end().ok();
        crew.field()
    })
}

#[test]
fn one_two_and_three_nodes_give_the_same_bits() {
    let crew = Crew::of(3, &[]);
    for members in [1, 2, 3] {
        crew.begin(members).end().ok();
        assert!(crew.field() == undisturbed(), "{members} members");
    }
    let (shape, values) = read_npy(undisturbed());
    assert_eq!(shape, "(120, 160, 2)");
    let most = values.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    assert!(most > 0.1 && most < 100.0, "waves neither die nor explode: {most}");
}

/// Each number of a cell by itself, row by row, in f64.
fn sums(field: &[u8]) -> Vec<f64> {
    let (_, values) = read_npy(field);
    let rows = values.chunks(2 * 160).map(|row| {
        let mut sums = [0.0, 0.0];
        row.iter().enumerate().for_each(|(at, value)| sums[at % 2] += f64::from(*value));
        sums
    });
    rows.fold(vec![0.0, 0.0], |all, row| vec![all[0] + row[0], all[1] + row[1]])
}

#[test]
fn members_make_the_same_total_however_many_they_are() {
    let crew = Crew::of(3, &[]);
    let flags = ["--param", "stiffness=0.2", "--reduce", "sum"];
    for (job, members) in [(1, 1), (2, 2), (3, 3)] {
        let done = crew.begin_with(members, "1000", &flags).end().ok();
        let sums = sums(&crew.field());
        let line = format!("step 4000: sum {} {}", sums[0], sums[1]);
        assert!(done.stderr.contains(&line), "{members} members, {line}: {}", done.stderr);
        let total = crew.pool.job(job).expect("the job")["sim"]["reduced"].clone();
        let values: Vec<_> = sums.iter().copied().map(Value::from).collect();
        assert_eq!(total, serde_json::json!({"how": "sum", "step": 4000, "values": values}));
        let story = crew.pool.explain(&job.to_string());
        assert!(story.contains("after step 4000 the sum of all cells is"), "{story}");
    }
}

#[test]
fn a_member_killed_in_the_middle_changes_nothing() {
    let mut crew = Crew::of(3, &[]);
    let job = crew.begin(3);
    crew.until_kept(3);
    let doomed = crew.seated(1);
    crew.nodes[doomed].kill();
    let _other = crew.pool.node("other", &[]);
    job.end().ok();
    assert!(crew.field() == undisturbed());
    let story = crew.story();
    assert!(story.contains("left"), "{story}");
}

#[test]
fn a_coordinator_killed_in_the_middle_changes_nothing() {
    let mut crew = Crew::of(2, &[]);
    let job = crew.begin(2);
    crew.until_kept(2);
    crew.pool.crash_and_restart();
    job.end().ok();
    assert!(crew.field() == undisturbed());
}

#[test]
fn a_frozen_member_is_named_and_replaced() {
    let crew = Crew::of(3, &[]);
    let job = crew.begin(2);
    crew.until_kept(2);
    let frozen = crew.nodes[crew.seated(0)].id();
    signal("-STOP", frozen);
    job.end().ok();
    signal("-CONT", frozen);
    assert!(crew.field() == undisturbed());
    let story = crew.story();
    let named = ["silent", "stalled", "waited for"].iter().any(|word| story.contains(word));
    assert!(named, "{story}");
}

#[test]
fn links_go_direct_and_leave_the_relay_alone() {
    let crew = Crew::of(2, &[]);
    let job = endless(&crew);
    crew.pool.until(|job| links(job).len() == 2 && links(job).iter().all(|via| via == "direct"));
    // A busy machine may make the relay the better way for a while: then it is looked at again.
    crew.pool.wait("bytes go directly and not by relay", || {
        let (relay, direct) = (relayed(&crew.pool), directly(&crew.pool));
        let step = crew.step();
        crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(step + 200));
        // A progress report is half a second old at most; what is left by relay is whether it is still there.
        let (relay, direct) = (relayed(&crew.pool) - relay, directly(&crew.pool) - direct);
        direct > 0 && relay * 50 < direct
    });
    crew.pool.run(&["cancel", "1"]).ok();
    job.end().fails(1, &["cancelled"]);
}

#[test]
fn nodes_without_direct_links_use_the_relay() {
    let crew = Crew::of(2, &["--no-direct"]);
    let job = endless(&crew);
    crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(300));
    let before = relayed(&crew.pool);
    let step = crew.step();
    crew.pool.until(|job| job["sim"]["step"].as_u64() > Some(step + 100));
    assert!(relayed(&crew.pool) > before, "bytes by relay");
    let job_now = crew.pool.job(1).expect("the job");
    assert!(links(&job_now).iter().all(|via| via == "relay"), "{job_now}");
    crew.pool.run(&["cancel", "1"]).ok();
    job.end().fails(1, &["cancelled"]);
}

#[test]
fn the_examples_run() {
    let crew = Crew::of(1, &[]);
    for (kernel, picture) in [("fluid.wgsl", "fluid.png"), ("reaction-diffusion.wgsl", "spots.png")]
    {
        let (kernel, picture) = (example(kernel), crew.here.path(picture).display().to_string());
        let out = crew.out();
        let args = ["sim", &kernel, "--grid", "128x96", "--steps", "200", "-o", &out];
        crew.pool.run(&[&args[..], &["--picture", &picture]].concat()).ok();
        let values = read_npy(&crew.field()).1;
        assert!(values.iter().all(|value| value.is_finite()), "{kernel}");
        let png = std::fs::read(&picture).expect("a picture");
        assert_eq!(&png[1..4], b"PNG");
    }
}

#[test]
fn what_cannot_run_says_why() {
    let crew = Crew::of(1, &[]);
    let kernel = crew.here.file("waves.wgsl", WAVES);
    let out = crew.out();
    let sim = |flags: &[&str]| {
        let args = ["sim", &kernel, "--param", "stiffness=0.2", "-o", &out];
        crew.pool.run(&[&args[..], flags].concat())
    };
    let grid = ["--grid", "64x64", "--steps", "10"];
    sim(&[&grid[..], &["--passes", "swim"]].concat()).fails(2, &["swim"]);
    sim(&[&grid[..], &["--halo", "65"]].concat()).fails(2, &["65"]);
    sim(&[&grid[..], &["--members", "65"]].concat()).fails(2, &["65"]);
    sim(&["--grid", "64", "--steps", "10"]).fails(2, &["WIDTHxHEIGHT"]);
    let flat = crew.here.file("flat.npy", crate::material::npy("(64, 64)", &[0.0; 4096]));
    sim(&[&grid[..], &["--first", &flat]].concat()).fails(2, &["[64, 64, 2]"]);
    // Two rows are read above and below, one is said.
    sim(&[&grid[..], &["--passes", "swing*2", "--halo", "1"]].concat()).fails(1, &["halo"]);
    assert!(!crew.here.path("out.npy").exists(), "no half result");
}

/// A simulation that is ended by the test.
fn endless(crew: &Crew) -> Running {
    let kernel = crew.here.file("waves.wgsl", WAVES);
    let args = ["sim", &kernel, "--grid", GRID, "--steps", "100000000", "--keep-every", "0"];
    let more = ["--param", "stiffness=0.2", "--members", "2"];
    crew.pool.begin(&[&args[..], &more[..]].concat(), b"")
}

impl Crew {
    pub(crate) fn step(&self) -> u64 {
        self.pool.job(1).and_then(|job| job["sim"]["step"].as_u64()).expect("a step")
    }
}

/// Bytes that members sent each other directly.
fn directly(pool: &Pool) -> u64 {
    let job = pool.job(1).expect("the job");
    let members = job["sim"]["crew"]["members"].as_array().cloned().unwrap_or_default();
    let links = members.iter().flat_map(|member| member["links"].as_array().cloned()).flatten();
    links.map(|link| link["direct"].as_u64().unwrap_or_default()).sum()
}

/// How each member talks to each other.
fn links(job: &Value) -> Vec<String> {
    let members = job["sim"]["crew"]["members"].as_array().cloned().unwrap_or_default();
    let links = members.iter().flat_map(|member| member["links"].as_array().cloned());
    links.flatten().map(|link| link["via"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Bytes that nodes sent each other through the coordinator.
fn relayed(pool: &Pool) -> u64 {
    pool.relay()["bytes"].as_u64().expect("a count")
}
