//! `bench sim-grid`: the fluid on one, two and three members that have the same cores together.

use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, load, node, number};
use crate::shell::Outcome;

/// Large enough that a third of it is mostly inside: the edges of a band are 16 rows each.
const GRID: [&str; 2] = ["512", "768"];
const SECONDS: &str = "15";
const MOST_MEMBERS: usize = 3;
/// Of one member's steps per processor second, what two and three members are to make: each computes 32 rows beside its
/// own, so nobody could make more than 0.96 and 0.93.
const WANTED: [f64; MOST_MEMBERS - 1] = [0.9, 0.85];

#[derive(Default)]
struct Found {
    per_second: Vec<f64>,
    waited: Vec<f64>,
    /// By a second of processor time, of all members together.
    per_cpu_second: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let mut found: [Found; MOST_MEMBERS] = Default::default();
    let mut report = Report::new("sim-grid", plan.rounds);
    let mut ways = Vec::new();
    for round in 1..=plan.rounds {
        for (members, found) in (1..).zip(&mut found) {
            plan.say(&format!("round {round}: {members} of {MOST_MEMBERS} members"));
            let seen = measure(members)?;
            found.per_second.push(number(&seen, "perSecond")?);
            found.waited.push(number(&seen, "waited")?);
            found.per_cpu_second.push(number(&seen, "perCpuSecond")?);
            ways.push(format!("{members}: rows {} via {}", seen["rows"], seen["via"]));
        }
    }
    let alone = most(&found[0].per_second);
    let alone_by_cpu = most(&found[0].per_cpu_second);
    report.ours("steps per second, 1 member", alone);
    report.ours("steps per processor second, 1 member", alone_by_cpu);
    for ((members, found), wanted) in (1..).zip(&found).skip(1).zip(WANTED) {
        let together = most(&found.per_second);
        report.ours(&format!("steps per second, {members} members"), together);
        let by_cpu = most(&found.per_cpu_second);
        report.ours(&format!("steps per processor second, {members} members"), by_cpu);
        report.ours(&format!("share of time waiting, {members} members"), least(&found.waited));
        report.aside(&format!("efficiency of {members} members"), together / alone);
        let name = format!("efficiency of {members} members, by processor time");
        report.ratio(&name, by_cpu / alone_by_cpu, Wanted::AtLeast(wanted));
    }
    report.note(format!(
        "the fluid on {} cells, native nodes on lavapipe; the best round of each",
        GRID.join(" x ")
    ));
    report.note(cores_note());
    report.note(ways.join("; "));
    report.note(
        "on a busy machine more processes get more of it, and waiting for a neighbour is waiting for its turn: by \
         processor time says what a crew itself costs",
    );
    report.note(load());
    Ok(report)
}

fn measure(members: usize) -> Outcome<serde_json::Value> {
    let mut pool = Pool::start()?;
    for member in 0..members {
        pool.add_node_on(cores_of(member, members).as_deref(), &["--cpus", "0"])?;
    }
    let at = &pool.running;
    let count = members.to_string();
    let words = ["e2e/bench/sim-grid.mjs", &at.url, &at.key, &count];
    let nodes = pool.nodes().map(|id| id.to_string());
    figures(node().args(words).args(GRID).arg(SECONDS).args(nodes))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A member's own share of the cores, where they can be shared out; else all members share all of them.
fn cores_of(member: usize, members: usize) -> Option<String> {
    let share = cores() / members;
    let is_even = cores().is_multiple_of(members) && members > 1;
    is_even.then(|| format!("{}-{}", member * share, (member + 1) * share - 1))
}

fn cores_note() -> String {
    let (own, shared): (Vec<_>, Vec<_>) =
        (1..=MOST_MEMBERS).partition(|members| cores_of(0, *members).is_some());
    format!(
        "{} cores for all members together: cut in equal parts for {own:?} members, free for all of {shared:?}; \
         the coordinator runs on them too",
        cores()
    )
}
