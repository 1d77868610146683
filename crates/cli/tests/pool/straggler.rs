//! Nodes that are slow, or freeze and come back: others are lent their units, and what they say too late
//! changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::material::{lines, program, worked_alone};
use crate::process::signal;
use crate::world::{Folder, Pool};

/// A node that is slowed runs for this long, then stands still for that long: it stays alive by its
/// heartbeats, at some percent of its speed.
const RUNS: Duration = Duration::from_millis(40);
const STANDS: Duration = Duration::from_millis(600);

const FLAGS: [&str; 3] = ["--no-gpu", "--cpus", "1"];

/// Slows a node while something else is done.
fn slowed<T>(node: u32, meanwhile: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                signal("-STOP", node);
                thread::sleep(STANDS);
                signal("-CONT", node);
                thread::sleep(RUNS);
            }
        });
        let done = meanwhile();
        over.store(true, Ordering::Relaxed);
        done
    })
}

#[test]
fn a_slow_node_s_late_units_are_lent_again() {
    let lines = lines(16);
    let wanted = worked_alone(&lines);
    let pool = Pool::start();
    let _fast = pool.node("fast", &FLAGS);
    let slow = pool.node("slow", &FLAGS);
    let args = ["exec", program(), "--lines", "--unit", "1", "--verify", "none", "--", "work"];
    let mut job = 0;
    slowed(slow.id(), || {
        pool.wait("a late unit was lent again", || {
            job += 1;
            assert_eq!(pool.run_with(&args, lines.as_bytes()).ok().stdout, wanted);
            pool.job(job).expect("the job")["speculated"].as_u64() > Some(0)
        });
    });
    let said = pool.explain(&job.to_string());
    assert!(said.contains("because they were late"), "{said}");
}

#[test]
fn a_frozen_node_s_late_answers_change_nothing() {
    let lines = lines(30);
    let wanted = worked_alone(&lines);
    let pool = Pool::start();
    let frozen = pool.node("frozen", &FLAGS);
    let _other = pool.node("other", &FLAGS);
    let args = ["exec", program(), "--lines", "--unit", "1", "--verify", "none", "--", "work"];
    let job = pool.begin(&args, lines.as_bytes());
    pool.wait("the node that will freeze has answered", || {
        pool.seen("frozen").is_some_and(|node| node["unitsDone"].as_u64() > Some(0))
    });
    signal("-STOP", frozen.id());
    assert_eq!(job.end().ok().stdout, wanted);
    let here = Folder::new();
    let receipt = |name: &str| {
        let path = here.path(name).display().to_string();
        pool.run(&["receipt", "1", "-o", &path]).ok();
        here.read(name)
    };
    let before = receipt("before.json");
    let done = |node: &str| pool.seen(node).and_then(|node| node["unitsDone"].as_u64());
    signal("-CONT", frozen.id());
    // It says what it had, and then computes again like everybody.
    let mut jobs = 1;
    pool.wait("the node is back", || {
        let was = done("frozen");
        jobs += 1;
        assert_eq!(pool.run_with(&args, lines.as_bytes()).ok().stdout, wanted);
        was.is_some() && done("frozen") > was
    });
    assert_eq!(receipt("after.json"), before);
    assert_eq!(pool.job(1).expect("the job")["itemsDone"], 30);
}
