//! `shoal service`, `services` and `ask`: programs that stay and answer.

use serde_json::Value;

use crate::material::program;
use crate::proxy::Proxy;
use crate::world::{Pool, Process};

/// A pool whose only node is the operator's own.
fn own_pool() -> (Pool, Process) {
    let pool = Pool::start();
    let node = own(&pool, "own");
    (pool, node)
}

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--key", &key])
}

fn service(pool: &Pool, name: &str) -> Option<Value> {
    let all = pool.run(&["services", "--json"]).ok().json();
    let all = all["services"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|service| service["name"] == name)
}

fn is_ready(pool: &Pool, name: &str, on: &str) -> bool {
    let replicas = service(pool, name).map(|service| service["replicas"].clone());
    let replicas = replicas.and_then(|all| all.as_array().cloned()).unwrap_or_default();
    replicas.iter().any(|replica| replica["name"] == on && replica["ready"] == true)
}

fn answer(pool: &Pool, args: &[&str], request: &[u8]) -> String {
    let done = pool.run_with(args, request).ok();
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn a_program_stays_and_answers() {
    let (pool, _node) = own_pool();
    let told = pool.run(&["service", "add", "shout", program()]).ok();
    assert!(String::from_utf8_lossy(&told.stdout).contains("shoal ask shout"));
    assert_eq!(answer(&pool, &["ask", "shout"], b"hello"), "HELLO");
    assert_eq!(answer(&pool, &["ask", "shout"], b""), "");
    let large: String = "abcdefgh".repeat(100_000);
    assert_eq!(answer(&pool, &["ask", "shout"], large.as_bytes()), large.to_uppercase());
    let list = String::from_utf8(pool.run(&["services"]).ok().stdout).expect("text");
    assert!(list.contains("shout: ready on own; 3 answered, 0 failed"), "{list}");
    pool.run(&["service", "rm", "shout"]).ok();
    pool.run(&["ask", "shout"]).fails(2, &["shout"]);
    pool.run(&["service", "rm", "shout"]).fails(2, &["shout"]);
}

#[test]
fn an_answer_is_shown_while_the_program_writes_it() {
    let (pool, _node) = own_pool();
    pool.run(&["service", "add", "talks", program(), "--", "talk"]).ok();
    pool.wait("it to be ready", || is_ready(&pool, "talks", "own"));
    // It never ends by itself, so that its deadline breaks it off.
    let done = pool.run_with(&["ask", "talks", "--deadline", "3"], b"7");
    assert!(done.stdout.starts_with(b"7 "), "{done:?}");
    done.fails(1, &["broke"]);
}

/// Connections that break in the middle are none of the user's business, as long as one holds.
#[test]
fn an_answer_that_breaks_off_on_the_way_is_asked_for_again() {
    let (pool, _node) = own_pool();
    pool.run(&["service", "add", "shout", program()]).ok();
    let large: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
    for flags in [&[][..], &["--json"]] {
        let proxy = Proxy::breaks(&pool.join, 2, 300_000);
        let args = ["ask", "shout", "--url", proxy.url(), "--key", &pool.key];
        let done = pool.run_with(&[&args, flags].concat(), large.as_bytes()).ok();
        let said = match flags {
            [] => String::from_utf8_lossy(&done.stdout).into_owned(),
            _ => done.json()["answer"].as_str().expect("text").to_owned(),
        };
        assert!(said == large.to_uppercase(), "{} bytes: {}", said.len(), done.stderr);
        assert_eq!(proxy.changed(), 2);
    }
    // None holds: what was shown is the beginning, and it is said that it is no more.
    let proxy = Proxy::breaks(&pool.join, u64::MAX, 300_000);
    let args = ["ask", "shout", "--url", proxy.url(), "--key", &pool.key];
    let done = pool.run_with(&args, large.as_bytes());
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(large.to_uppercase().starts_with(&shown), "{} bytes", shown.len());
    let size = format!("broke off after {} bytes", shown.len());
    done.fails(1, &[&size, "not whole"]);
}

#[test]
fn what_is_wrong_is_said() {
    let (pool, _node) = own_pool();
    pool.run(&["service", "add", "a/b", program()]).fails(2, &["a/b"]);
    pool.run(&["service", "add", "x", "nowhere.wasm"]).fails(2, &["nowhere.wasm"]);
    pool.run(&["service", "add", "exits", program(), "--", "exit"]).ok();
    pool.run_with(&["ask", "exits"], b"5").fails(1, &["code 9"]);
    pool.run(&["service", "add", "exits", program()]).fails(2, &["exits"]);
    let failed = service(&pool, "exits").expect("it stays");
    assert_eq!((&failed["answered"], &failed["failed"]), (&0.into(), &1.into()));
    // It still answers others.
    pool.run_with(&["ask", "exits"], b"0").ok();
}

#[test]
fn another_node_takes_over_and_a_restart_forgets_nothing() {
    let (mut pool, node) = own_pool();
    pool.run(&["service", "add", "shout", program()]).ok();
    pool.wait("the first to be ready", || is_ready(&pool, "shout", "own"));
    let _second = own(&pool, "second");
    let mut node = node;
    node.kill();
    assert_eq!(answer(&pool, &["ask", "shout"], b"still here"), "STILL HERE");
    assert!(is_ready(&pool, "shout", "second"));
    pool.crash_and_restart();
    assert_eq!(answer(&pool, &["ask", "shout"], b"and again"), "AND AGAIN");
}

#[test]
fn strangers_serve_only_where_they_may() {
    let pool = Pool::start();
    let _stranger = pool.node("stranger", &["--no-gpu"]);
    pool.run(&["service", "add", "mine", program()]).ok();
    pool.run_with(&["ask", "mine", "--deadline", "1"], b"x").fails(1, &["node"]);
    pool.run(&["service", "add", "anybody", program(), "--strangers"]).ok();
    assert_eq!(answer(&pool, &["ask", "anybody"], b"x"), "X");
}

#[test]
fn a_service_counts_for_the_memory_lent() {
    let pool = Pool::start();
    let key = pool.key.clone();
    // What one run may use, and a quarter more for its files.
    let flags = ["--no-gpu", "--cpus", "4", "--memory", "320M", "--key", &key];
    let _node = pool.node("small", &flags);
    pool.run(&["service", "add", "shout", program()]).ok();
    assert_eq!(answer(&pool, &["ask", "shout"], b"x"), "X");
    // There is memory for one of them: whichever is asked is there, and the other leaves.
    pool.run(&["service", "add", "more", program()]).ok();
    let ready = || {
        let all = pool.run(&["services", "--json"]).ok().json();
        let all = all["services"].as_array().cloned().unwrap_or_default();
        let has = |one: &&Value| one["replicas"].as_array().is_some_and(|list| !list.is_empty());
        all.iter().filter(has).map(|one| one["name"].to_string()).collect::<Vec<_>>()
    };
    for name in ["more", "shout", "more"] {
        assert_eq!(answer(&pool, &["ask", name], b"x"), "X");
        assert_eq!(ready(), [format!("{name:?}")]);
    }
}

#[test]
fn requests_are_answered_while_units_run() {
    let (pool, _node) = own_pool();
    pool.run(&["service", "add", "shout", program()]).ok();
    let input: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    let job = pool.begin(&["exec", program(), "--lines"], input.as_bytes());
    for i in 0..10 {
        let request = format!("request {i}");
        let upper = request.to_uppercase();
        assert_eq!(answer(&pool, &["ask", "shout"], request.as_bytes()), upper);
    }
    let done = job.end().ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.to_uppercase());
}
