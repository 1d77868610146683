//! Who a node is to the pools it joins.

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
