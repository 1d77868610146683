//! Everything that must hold, in the order that fails soonest, each step with its time.

mod again;
mod arm;
mod aside;
mod busy;
mod count;
mod family;
mod lanes;
mod rust;
mod slow;
mod suites;

use std::time::{Duration, Instant};

use crate::shell::{For, Outcome};
use crate::{outside, programs, setup, shell, web};
use count::Counts;
use suites::{Needs, Pace, SUITES, Suite};

type Build = fn() -> Outcome;

/// The outcome of one step, for the table at the end.
struct Row {
    name: &'static str,
    took: Duration,
    /// Of the processors, by all that it started; not known of a suite that ran beside another.
    busy: Option<Duration>,
    counts: Counts,
    fault: Option<String>,
}

pub(crate) fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| matches!(arg.as_str(), "--list" | "--help" | "-h")) {
        println!("cargo xtask test [SUITE]...: all of these, or only those that are named");
        for suite in SUITES {
            println!("{:<12} {}", suite.name, suite.about);
        }
        return Ok(());
    }
    let chosen = choose(args)?;
    let begun = Instant::now();
    let mut rows = Vec::new();
    prepare(&chosen, &mut rows);
    if rows.iter().all(|row| row.fault.is_none()) {
        run_all(&chosen, &mut rows);
    }
    sum_up(&rows, begun.elapsed())
}

/// Those that need the machine for themselves first. Then those that compute take what those leave that mostly wait.
fn run_all(chosen: &[&'static Suite], rows: &mut Vec<Row>) {
    let of = |pace: Pace| chosen.iter().filter(move |suite| suite.pace == pace);
    let alone = |suite: &&'static Suite| step(suite.name, suite.run);
    rows.extend(of(Pace::Alone).map(alone));
    let (computes, waits) = (of(Pace::Computes).count(), of(Pace::Waits).count());
    if computes == 0 || waits == 0 {
        rows.extend(of(Pace::Computes).chain(of(Pace::Waits)).map(alone));
        return;
    }
    let beside = |suite: &&'static Suite| Row { busy: None, ..step(suite.name, suite.run) };
    let (aside, waited) = std::thread::scope(|scope| {
        let aside = scope.spawn(|| {
            aside::give_way().then(|| of(Pace::Computes).map(beside).collect::<Vec<Row>>())
        });
        let waited: Vec<Row> = of(Pace::Waits).map(beside).collect();
        (aside.join().unwrap_or_default(), waited)
    });
    // Where the system cannot put one behind the other, they run one after the other.
    rows.extend(aside.unwrap_or_else(|| of(Pace::Computes).map(alone).collect()));
    rows.extend(waited);
}

fn choose(names: &[String]) -> Outcome<Vec<&'static Suite>> {
    if names.is_empty() {
        return Ok(SUITES.iter().collect());
    }
    let find = |name: &String| {
        SUITES.iter().find(|suite| suite.name == name).ok_or_else(|| {
            let known: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            format!("there is no suite `{name}`, only {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Builds what the chosen suites stand on; stops at the first fault, since the rest would only repeat it.
fn prepare(chosen: &[&'static Suite], rows: &mut Vec<Row>) {
    let needs = |need: Needs| chosen.iter().any(|suite| suite.needs >= need);
    let steps: [(&'static str, bool, Build); 5] = [
        ("setup", needs(Needs::Pages), setup::for_testing),
        ("web", needs(Needs::Pages), || web::build(For::Tests)),
        ("programs", needs(Needs::Pages), programs::build),
        ("outside", needs(Needs::Outside), outside::fetch),
        ("build", needs(Needs::Binary), || shell::build_shoal(For::Tests)),
    ];
    for (name, wanted, run) in steps {
        if wanted {
            let row = step(name, || run().map(|()| Counts::default()));
            let failed = row.fault.is_some();
            rows.push(row);
            if failed {
                return;
            }
        }
    }
}

fn step(name: &'static str, run: impl FnOnce() -> Outcome<Counts>) -> Row {
    println!("== {name}");
    let (start, before) = (Instant::now(), busy::of_children());
    let result = run();
    let (took, busy) = (start.elapsed(), Some(busy::of_children().saturating_sub(before)));
    let (mut counts, mut fault) = match result {
        Ok(counts) => (counts, None),
        Err(message) => (Counts::default(), Some(message)),
    };
    if counts.failed > 0 {
        fault = Some(format!("{} failed", counts.failed));
    } else if fault.is_some() {
        counts.failed = 1;
    }
    let verdict = fault.as_deref().unwrap_or("ok");
    println!("-- {name}: {verdict} ({:.1} s)", took.as_secs_f64());
    Row { name, took, busy, counts, fault }
}

fn sum_up(rows: &[Row], took: Duration) -> Outcome {
    let mut total = Counts::default();
    println!("\n{:<12} {:>8} {:>8} {:>7} {:>7}", "step", "seconds", "of cores", "passed", "failed");
    for row in rows {
        let (passed, failed) = (row.counts.passed, row.counts.failed);
        let took = row.took.as_secs_f64();
        let cores = row.busy.map_or_else(
            || "-".to_owned(),
            |busy| format!("{:.2}", busy.as_secs_f64() / took.max(0.01)),
        );
        println!("{:<12} {took:>8.1} {cores:>8} {passed:>7} {failed:>7}", row.name);
        total += row.counts.clone();
    }
    total.slowest.print();
    println!("\n{:.1} s: {} passed, {} failed", took.as_secs_f64(), total.passed, total.failed);
    if total.shaky > 0 {
        println!("{} of those passed only when run again: see `run again` above", total.shaky);
    }
    let faults: Vec<String> = rows
        .iter()
        .filter_map(|row| row.fault.as_ref().map(|fault| format!("{}: {fault}", row.name)))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\nxtask: ")) }
}
