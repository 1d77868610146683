//! `bench farm-exec`: a small program over many inputs, against the same arithmetic as tasks of Ray and Dask.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use super::peers::{self, Task};
use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build};
use crate::shell::{Outcome, output, root, target, write};

const RUNS: u64 = 100_000;
/// As `peers.py` has it.
const LIMITS: u64 = 1_000;
/// Runs before any is timed: the program is there and compiled then.
const WARM: u64 = 500;
const WANTED: f64 = 10.0;

const PEERS: [&str; 2] = ["ray", "dask"];
const TASKS: [Task; 2] = [Task::Python, Task::Numba];

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    peers::install(plan)?;
    let mut ours = Vec::new();
    let mut theirs: Vec<(String, Vec<f64>)> = Vec::new();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: Shoal"));
        let (per_second, sum) = measure()?;
        ours.push(per_second);
        for (at, (peer, task)) in both().enumerate() {
            plan.say(&format!("round {round}: {peer}, {}", task.name()));
            let found = peers::measure(peer, task, RUNS, 0)?;
            if found.sum != sum as f64 {
                let name = task.name();
                return Err(format!(
                    "{peer}'s {name} tasks add up to {}, ours to {sum}",
                    found.sum
                ));
            }
            if theirs.len() == at {
                theirs.push((named(peer, task), Vec::new()));
            }
            theirs[at].1.push(found.per_second);
        }
    }
    let best = most(&ours);
    let mut report = Report::new("farm-exec", plan.rounds);
    report.ours("runsPerSecond", best);
    report.ours("slowestRoundRunsPerSecond", least(&ours));
    for (name, rates) in &theirs {
        report.peer(name, most(rates));
        report.ratio(&format!("to {name}"), best / most(rates), Wanted::AtLeast(WANTED));
    }
    report.note(format!(
        "examples/programs/primes over {RUNS} lines, each line a run of its own, two native nodes with one thread each; from the command's start to its end, upload and download included"
    ));
    report.note("peers: two workers, the same sieve in plain Python and compiled by numba, a task for each number, all submitted in one batch; compiled before the clock starts. All sums are compared");
    Ok(report)
}

fn both() -> impl Iterator<Item = (&'static str, Task)> {
    PEERS.into_iter().flat_map(|peer| TASKS.map(|task| (peer, task)))
}

fn named(peer: &str, task: Task) -> String {
    format!("{peer} {} tasksPerSecond", task.name())
}

/// Runs a second, and the sum of all answers.
fn measure() -> Outcome<(f64, u64)> {
    let mut pool = Pool::start()?;
    for _ in 0..2 {
        pool.add_node(&["--no-gpu", "--cpus", "1"])?;
    }
    let lines = target().join(format!("farm-exec-{}.txt", std::process::id()));
    exec(&pool, &lines, WARM)?;
    let begun = Instant::now();
    let sum = exec(&pool, &lines, RUNS);
    let took = begun.elapsed();
    // Whatever came of it.
    let _ = std::fs::remove_file(&lines);
    Ok((RUNS as f64 / took.as_secs_f64(), sum?))
}

/// The sum of the answers to so many lines.
fn exec(pool: &Pool, lines: &Path, count: u64) -> Outcome<u64> {
    let numbers: Vec<String> = (0..count).map(|at| (at % LIMITS).to_string()).collect();
    write(lines, numbers.join("\n"))?;
    let input = std::fs::File::open(lines).map_err(|error| error.to_string())?;
    let program = root().join("examples/programs/target/primes.wasm").display().to_string();
    let mut exec = pool.client(&["exec", &program, "--lines"]);
    let answers = output(exec.stdin(input).stderr(Stdio::null()))?;
    let found: Vec<u64> = answers.lines().filter_map(|line| line.parse().ok()).collect();
    if found.len() as u64 != count {
        return Err(format!("{} answers to {count} lines", found.len()));
    }
    Ok(found.iter().sum())
}
