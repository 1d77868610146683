//! `bench nodes`: ten thousand connected nodes on one coordinator, what they cost, and how they come back.

use std::time::{Duration, Instant};

use super::crowd::Swarm;
use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, number};
use crate::shell::{Outcome, output};

const NODES: u64 = 10_000;
const UNITS: u64 = 200_000;
const LEAST_PER_SECOND: f64 = 5_000.0;
const MOST_SECONDS: f64 = 15.0;
/// Of all nodes, how many may try to connect within a tenth of a second after a restart. More would come
/// faster than one coordinator can check signatures.
const MOST_AT_ONCE: f64 = 0.25;
/// What joining leaves behind is tidied up before memory and idle time are looked at.
const SETTLE: Duration = Duration::from_secs(5);
/// A round of idle heartbeats and pings.
const IDLE: Duration = Duration::from_secs(15);
/// Files a process has open beside its nodes.
const OTHER_FILES: u64 = 500;

/// What each round found.
#[derive(Default)]
struct Found {
    join: Vec<f64>,
    bytes_each: Vec<f64>,
    idle_percent: Vec<f64>,
    per_second: Vec<f64>,
    back: Vec<f64>,
    at_once: Vec<f64>,
    slowest_answer: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    Swarm::build()?;
    let nodes = room()?;
    let mut found = Found::default();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: {nodes} nodes join, idle, work, and come back"));
        measure(nodes, &mut found)?;
    }
    let mut report = Report::new("nodes", plan.rounds);
    report.ours("nodes", nodes as f64);
    report.judge("nodes", nodes as f64, Wanted::AtLeast(NODES as f64));
    report.ours("joinSeconds", least(&found.join));
    report.ours("kilobytesPerNode", least(&found.bytes_each) / 1e3);
    report.ours("idlePercentOfOneCore", least(&found.idle_percent));
    let per_second = most(&found.per_second);
    report.ours("unitsPerSecond", per_second);
    report.judge("unitsPerSecond", per_second, Wanted::AtLeast(LEAST_PER_SECOND));
    // The worst round: coming back is a promise, not a race.
    let back = most(&found.back);
    report.ours("backAfterCrashSeconds", back);
    report.judge("backAfterCrashSeconds", back, Wanted::AtMost(MOST_SECONDS));
    let at_once = most(&found.at_once) / nodes as f64;
    report.ours("shareThatTriesWithin100Millis", at_once);
    report.judge("shareThatTriesWithin100Millis", at_once, Wanted::AtMost(MOST_AT_ONCE));
    report.ours("slowestAnswerMeanwhileMillis", most(&found.slowest_answer) * 1e3);
    report.note("real WebSockets on loopback, real node brains that compute nothing, in one process of one thread; 2,000 begin in a second");
    report.note("from `kill -9` until all are joined again, each with a new challenge and signature; the slowest answer is to GET /healthz");
    Ok(report)
}

fn measure(nodes: u64, found: &mut Found) -> Outcome {
    let mut pool = Pool::start()?;
    let empty = pool.coordinator_memory();
    let start = Instant::now();
    let swarm = Swarm::start(&pool, nodes)?;
    found.join.push(swarm.wait(&pool, nodes, start)?.seconds);
    std::thread::sleep(SETTLE);
    if let (Some(empty), Some(full)) = (empty, pool.coordinator_memory()) {
        found.bytes_each.push((full - empty) / nodes as f64);
    }
    let before = pool.coordinator_cpu();
    std::thread::sleep(IDLE);
    if let (Some(before), Some(after)) = (before, pool.coordinator_cpu()) {
        found.idle_percent.push((after - before) / IDLE.as_secs_f64() * 100.0);
    }
    let units = UNITS.to_string();
    let batch = figures(&mut pool.client(&["noop", "--items", &units, "--json"]))?;
    found.per_second.push(UNITS as f64 / number(&batch, "seconds")?);
    let crash = Instant::now();
    pool.crash()?;
    let back = swarm.wait(&pool, nodes, crash)?;
    found.back.push(back.seconds);
    found.at_once.push(back.most_tries);
    found.slowest_answer.push(back.slowest_answer);
    // Full strength is more than sockets.
    figures(&mut pool.client(&["noop", "--items", "1000", "--json"]))?;
    Ok(())
}

/// As many nodes as this user may have open files for.
fn room() -> Outcome<u64> {
    let limit = output(crate::shell::command("sh").args(["-c", "ulimit -Hn"]))?;
    let files = limit.trim().parse().unwrap_or(u64::MAX);
    Ok(NODES.min(files.saturating_sub(OTHER_FILES)))
}
