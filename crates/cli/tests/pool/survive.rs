//! Nodes and coordinators killed in the middle, and work that never ends.

use std::sync::OnceLock;

use std::time::{Duration, Instant};

use crate::material::{npy, program, read_npy};
use crate::process::Running;
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

/// How long everybody but the client is killed again and again; another time with this variable. `cargo xtask test`
/// runs it beside all other tests, behind them.
const KILLS_SECONDS: u64 = 120;
const KILLS_VARIABLE: &str = "SHOAL_KILL_SECONDS";
/// A folder that takes some moments to be sent and fetched.
const NOISE: usize = 24 << 20;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// The client sends a large file, computes and fetches: whatever it does just then, the coordinator or a node is gone.
#[test]
fn a_client_brings_the_right_answers_home_while_everybody_else_is_killed() {
    let asked = std::env::var(KILLS_VARIABLE).ok().and_then(|text| text.parse().ok());
    let seconds = asked.unwrap_or(KILLS_SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut pool = Pool::start();
    let start = |pool: &Pool, name| pool.node(name, &["--no-gpu", "--cpus", "1"]);
    let names = ["one", "two", "three"];
    let mut nodes = names.map(|name| start(&pool, name));
    let mut dice = Dice(7);
    let noise: Vec<u8> =
        (0..NOISE / 4).flat_map(|_| (dice.below(1 << 31) as u32).to_le_bytes()).collect();
    let here = Folder::new();
    let file = here.file("noise", &noise);
    let echoed = here.path("echoed").display().to_string();
    let (mut rounds, mut kills) = (0, 0);
    while rounds < 2 || Instant::now() < until {
        // By turns one program over lines, and one file there and back.
        let is_lines = rounds % 2 == 0;
        let lines = ["exec", program(), "--lines", "--unit", "1", "--", "work"];
        let whole = ["exec", program(), &file, "-o", &echoed, "--limit-output", "64", "--", "raw"];
        let mut client = match is_lines {
            true => pool.begin(&lines, lines_of(rounds).as_bytes()),
            false => pool.begin(&whole, b""),
        };
        while !client.is_over() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(300 + dice.below(2_000)));
            let victim = dice.below(6) as usize;
            match nodes.get_mut(victim) {
                Some(node) => {
                    node.kill();
                    *node = start(&pool, names[victim]);
                }
                None => pool.crash_and_restart(),
            }
            kills += 1;
        }
        let done = client.end().ok();
        match is_lines {
            true => assert_eq!(done.stdout, worked(&lines_of(rounds)), "{}", done.stderr),
            false => assert!(here.read("echoed/noise") == noise, "{}", done.stderr),
        }
        rounds += 1;
    }
    assert!(kills >= seconds / 8, "only {kills} were killed");
    let jobs = pool.run(&["jobs", "--json"]).ok().json();
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(rounds), "no job was taken twice");
}

/// Others in each round, so that no answer is an old one.
fn lines_of(round: usize) -> String {
    (0..LINES).map(|i| format!("{}\n", i + 1_000 * round as u64)).collect()
}

/// What the program's `work` makes of numbers, computed here.
fn worked(lines: &str) -> Vec<u8> {
    let mut answers = String::new();
    for seed in lines.lines() {
        let mut state = seed.parse::<u64>().expect("a number") + 1;
        for _ in 0..20_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        answers.push_str(&format!("{seed} {state}\n"));
    }
    answers.into_bytes()
}

#[test]
fn a_client_waits_for_a_coordinator_that_is_not_back_yet() {
    let mut pool = Pool::start();
    let address = pool.url.trim_start_matches("http://").to_owned();
    pool.process.kill();
    let mut client = pool.begin(&["jobs", "--json"], b"");
    // Somebody else has its place for a moment, and hangs up on everybody.
    let wrong = std::net::TcpListener::bind(&address).expect("the port is free");
    drop(wrong.accept().expect("the client comes"));
    drop(wrong);
    assert!(!client.is_over(), "it waits");
    pool.restart();
    assert_eq!(client.end().ok().json()["jobs"], serde_json::json!([]));
    // Without patience it says so at once.
    pool.process.kill();
    pool.run(&["jobs", "--patience", "0"]).fails(1, &["cannot reach", "refused"]);
}

/// From another machine there is nothing but the address: nobody says that a coordinator runs there.
#[test]
fn whoever_watches_a_job_from_afar_waits_for_a_coordinator_that_restarts() {
    let (mut pool, _node) = Pool::with_node();
    let args = ["exec", program(), "--lines", "--detach", "--", "upper"];
    pool.run_with(&args, b"a\n").ok();
    pool.until(|job| job["state"] == "done");
    pool.process.kill();
    let empty = pool.folder.path("elsewhere").display().to_string();
    let args = ["watch", "1", "--json", "--url", &pool.url, "--key", &pool.key, "--data", &empty];
    let mut client = Running::start(&args, &[], b"");
    // Somebody else has its place for a moment, and hangs up.
    let wrong = std::net::TcpListener::bind(pool.url.trim_start_matches("http://"));
    let wrong = wrong.expect("the port is free");
    drop(wrong.accept().expect("the client comes"));
    drop(wrong);
    assert!(!client.is_over(), "it waits");
    pool.restart();
    let said = client.end().ok().stdout;
    assert!(String::from_utf8_lossy(&said).contains("\"state\":\"done\""));
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
    let stop = |flags: &[&str], mode: &str| exec(&[&["--stop-on-error"], flags].concat(), mode);
    stop(&["--limit-seconds", "1"], "spin").fails(1, &["time limit", "line 8"]);
    stop(&[], "trap").fails(1, &["line 4", "no threes"]);
    stop(&[], "exit").fails(1, &["exit code 9", "line 6", "five is too much"]);
    stop(&["--limit-memory", "64"], "grow").fails(1, &["memory limit", "line"]);
    stop(&["--limit-output", "1"], "flood").fails(1, &["output limit", "line"]);
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
