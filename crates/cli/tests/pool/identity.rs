//! Who a node is to the pools it joins, and for whom jobs run.

use crate::world::{Folder, Pool, Process, Running, shoal};

fn join(pool: &Pool, data: &str) -> Process {
    let args = ["join", &pool.join, "--json", "--no-gpu", "--cpus", "1", "--data", data];
    let node = Process::spawn(shoal(&[&args[..], &["--node-name", "guest"]].concat()));
    node.line(|line| line["event"] == "joined");
    node
}

fn identity(pool: &Pool) -> String {
    let seen = pool.seen("guest").expect("a node");
    seen["identity"].as_str().expect("an identity").to_owned()
}

#[test]
fn two_pools_see_two_nodes_and_each_the_same_one_again() {
    let (one, two) = (Pool::start(), Pool::start());
    let here = Folder::new();
    let data = here.path("data").display().to_string();
    let mut node = join(&one, &data);
    let first = identity(&one);
    node.kill();
    let mut node = join(&two, &data);
    assert_ne!(identity(&two), first);
    node.kill();
    let _node = join(&one, &data);
    assert_eq!(identity(&one), first);
}

#[test]
fn another_coordinator_at_a_known_address_is_refused() {
    let mut pool = Pool::start();
    let here = Folder::new();
    let data = here.path("data").display().to_string();
    join(&pool, &data).kill();
    pool.process.kill();
    let other = Pool::listen(pool.url.trim_start_matches("http://"));
    let args = ["join", &other.join, "--no-gpu", "--data", &data];
    let refused = || Running::start(&args, &[], b"").end();
    refused().fails(1, &["another coordinator", "remove its line", "pools.json"]);
    refused().fails(1, &["another coordinator"]);
    std::fs::remove_file(here.path("data/pools.json")).expect("removed");
    join(&other, &data);
}

#[test]
fn the_operator_s_own_node_shows_its_key_to_nobody_else() {
    let pool = Pool::start();
    let here = Folder::new();
    let file = here.file("api.key", format!("{}\n", pool.key));
    let start = |name: &str, flags: &[&str], env: &[(&str, &str)]| {
        let data = here.path(name).display().to_string();
        let args = ["join", &pool.url, "--json", "--no-gpu", "--data", &data, "--node-name", name];
        let mut command = shoal(&[&args[..], flags].concat());
        let node = Process::spawn({
            command.envs(env.iter().copied());
            command
        });
        node.line(|line| line["event"] == "joined");
        assert_eq!(pool.seen(name).expect("a node")["trusted"], true);
        node
    };
    let _file = start("file", &["--key-file", &file], &[]);
    let _env = start("env", &["--own"], &[("SHOAL_KEY", &pool.key)]);
    let args = ["join", &pool.url, "--own", "--no-gpu"];
    Running::start(&args, &[], b"").end().fails(2, &["SHOAL_KEY", "--key-file"]);
}

#[test]
fn the_table_of_all_nodes_shows_those_that_left() {
    let (pool, mut node) = Pool::with_node();
    pool.run(&["noop", "--items", "40", "--unit", "10"]).ok();
    let table = |flags: &[&str]| {
        let done = pool.run(&[&["nodes"], flags].concat()).ok();
        String::from_utf8(done.stdout).expect("text")
    };
    let row = |text: &str| {
        let row = text.lines().rfind(|line| line.contains("first")).expect("its row").to_owned();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let here = table(&["--all"]);
    assert!(here.contains("AWAY") && !here.contains("LAST SEEN"), "it is here: {here}");
    assert_eq!(row(&here)[..2], ["1", "first"]);
    node.kill();
    pool.wait("it is gone", || pool.seen("first").is_none());
    assert!(!table(&[]).contains("first"));
    let all = table(&["--all"]);
    let said = pool.run(&["nodes", "--all", "--json"]).ok().json()["left"][0].clone();
    let (kind, units) = (said["kind"].as_str().expect("a kind"), said["unitsDone"].to_string());
    assert_eq!(units, "4", "{said}");
    assert!(all.contains("LAST SEEN"), "{all}");
    assert_eq!(row(&all)[..5], ["1", "first", kind, &units, "0"], "{all}");
    assert_eq!(row(&all).last().map(String::as_str), Some("ago"), "{all}");
}

#[test]
fn a_job_is_for_the_user_unless_somebody_else_is_named() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let data = pool.folder.path("data").display().to_string();
    let kernel = here.file(
        "one.wgsl",
        "@group(0) @binding(0) var<storage, read> input: array<f32>;
         @group(0) @binding(1) var<storage, read_write> output: array<f32>;
         @compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             if id.x < arrayLength(&output) { output[id.x] = input[id.x]; }
         }",
    );
    let input = here.file("in.f32", [0; 16]);
    let run = |user: Option<&str>, flags: &[&str]| {
        let mut command = shoal(&[&["map", &kernel, &input, "--raw", "f32"], flags].concat());
        command.env("SHOAL_DATA", &data);
        for name in ["USER", "USERNAME", "LOGNAME"] {
            command.env_remove(name);
        }
        command.envs(user.map(|user| ("USER", user)));
        Running::spawn(command, b"").end().ok();
    };
    run(Some("grace"), &[]);
    run(Some("grace"), &["--owner", "Ada"]);
    run(None, &[]);
    for (job, owner) in [(1, "grace"), (2, "Ada"), (3, "someone")] {
        assert_eq!(pool.job(job).expect("a job")["owner"], owner);
    }
}
