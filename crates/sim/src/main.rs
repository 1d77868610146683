//! Runs worlds: `shoal-sim --seeds 200`, one again with `--seed 17`; with a part of them only: `--farms 200`,
//! `--crews 300`, `--lying-crews 60`, `--splits 100`, `--lying-splits 60`, `--swarms 100`; or measures: `--crowd 10000` what scheduling
//! costs, `--swarm-cost 100` what spreading a blob costs, `--churn` how a pool copes with leaving and slow nodes,
//! `--verify` what checking costs and catches.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use shoal_protocol::Verify;
use shoal_sim::{
    Churn, CrewReport, Gang, Pool, Probe, Report, Scenario, checking, churn, crew, farm,
    lying_crew, lying_split, run, run_probed, split, swarm, swarm_cost,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    for mix in MIXES {
        if let Some(seed) = number(mix.again) {
            println!("{:#?}", (mix.run)(seed));
            return ExitCode::SUCCESS;
        }
    }
    for mix in MIXES {
        if let Some(seeds) = number(mix.many) {
            return many(mix, number("--from").unwrap_or(0), seeds);
        }
    }
    if let Some(nodes) = number("--swarm-cost") {
        let pieces = number("--pieces").unwrap_or(1024) as u32;
        show_swarm_cost(nodes, pieces, number("--parts").unwrap_or(1).max(1) as u32);
        return ExitCode::SUCCESS;
    }
    if let Some(nodes) = number("--crowd") {
        crowd(nodes, number("--units").unwrap_or(200_000));
        return ExitCode::SUCCESS;
    }
    let seed = number("--from").unwrap_or(1);
    if args.iter().any(|arg| arg == "--churn") {
        show_churn(seed, number("--rounds").unwrap_or(5));
        return ExitCode::SUCCESS;
    }
    if args.iter().any(|arg| arg == "--verify") {
        show_checking(seed, number("--nodes").unwrap_or(1_000), number("--units").unwrap_or(60));
        return ExitCode::SUCCESS;
    }
    many(&MIXES[0], number("--from").unwrap_or(0), 200)
}

/// What worlds are drawn from a seed.
struct Mix {
    /// What they are called, the flag for so many of them, and the one for one of them.
    name: &'static str,
    many: &'static str,
    again: &'static str,
    run: fn(u64) -> Report,
}

const MIXES: &[Mix] = &[
    Mix { name: "worlds", many: "--seeds", again: "--seed", run },
    Mix { name: "farms", many: "--farms", again: "--farm-seed", run: farm },
    Mix { name: "crews", many: "--crews", again: "--crew-seed", run: crew },
    Mix { name: "lying crews", many: "--lying-crews", again: "--lying-crew-seed", run: lying_crew },
    Mix { name: "split services", many: "--splits", again: "--split-seed", run: split },
    Mix {
        name: "lying split services",
        many: "--lying-splits",
        again: "--lying-split-seed",
        run: lying_split,
    },
    Mix { name: "swarms", many: "--swarms", again: "--swarm-seed", run: swarm },
];

/// Runs a world for each seed, as many at a time as there are cores; how many failed. Worlds share nothing, and
/// what came of them is added up and printed in the order of their seeds. `again` is the flag that runs one of them
/// again.
fn each<R: Send>(
    from: u64,
    seeds: u64,
    again: &str,
    run: fn(u64) -> R,
    mut add: impl FnMut(u64, R),
) -> u64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (next, end) = (AtomicU64::new(from), from + seeds);
    let (over, reports) = mpsc::channel();
    let mut failed = 0;
    thread::scope(|scope| {
        for _ in 0..cores {
            let (next, over) = (&next, over.clone());
            scope.spawn(move || {
                let seeds = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                for seed in seeds.take_while(|seed| *seed < end) {
                    let heard = over.send((seed, apart(seed, run)));
                    heard.expect("somebody waits for all worlds");
                }
            });
        }
        drop(over);
        let (mut early, mut due) = (BTreeMap::new(), from);
        for (seed, report) in reports {
            early.insert(seed, report);
            while let Some(report) = early.remove(&due) {
                if let Some(report) = report {
                    add(due, report);
                } else {
                    println!("seed {due} failed; again: cargo xtask sim {again} {due}");
                    failed += 1;
                }
                due += 1;
            }
        }
    });
    failed
}

/// Runs a world in a thread of its own, named so that a panic says whose it is; `None` if it did panic.
fn apart<R: Send>(seed: u64, run: fn(u64) -> R) -> Option<R> {
    thread::scope(|scope| {
        let world = thread::Builder::new().name(format!("seed {seed}"));
        let world = world.spawn_scoped(scope, || run(seed));
        world.expect("a thread for a world").join().ok()
    })
}

fn verdict(seeds: u64, failed: u64) -> ExitCode {
    println!("{} passed, {failed} failed", seeds - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn many(mix: &Mix, from: u64, seeds: u64) -> ExitCode {
    let start = Instant::now();
    let mut total = Report::default();
    let (mut crowds, mut crewed, mut swarmed, mut served) = (0, 0, 0, 0);
    let failed = each(from, seeds, mix.again, mix.run, |seed, report| {
        if report.honest_rejected > 0 {
            println!("seed {seed}: {} honest nodes were called wrong", report.honest_rejected);
        }
        crowds += u64::from(report.nodes >= 1_000);
        crewed += u64::from(report.crew.fields + report.crew.given_up > 0);
        swarmed += u64::from(report.swarm.pieces > 0);
        served += u64::from(report.calls > 0);
        total.add(&report);
    });
    println!(
        "{seeds} {} ({crowds} with 1,000 to 10,000 nodes, {crewed} with crews, {swarmed} with swarms, {served} with services) in {:.1} s: {} events, {} faults, {} hostile deeds, {} crashes",
        mix.name,
        start.elapsed().as_secs_f64(),
        total.events,
        total.faults,
        total.deeds,
        total.crashes
    );
    if total.units > 0 {
        println!(
            "farm: {} units, {} copies of late units, {} lies found ({} of honest nodes), {} units computed again, {} wrong when delivered (where the policy allows it)",
            total.units,
            total.speculated,
            total.rejected,
            total.honest_rejected,
            total.unmerged,
            total.wrong
        );
    }
    if total.calls > 0 {
        println!(
            "services: {} of {} requests answered, {} by several devices together, which were called {} times; texts had {} turns of their parts, and {} went on where others were lost",
            total.answered,
            total.calls,
            total.answered_split,
            total.split,
            total.rounds,
            total.resumed
        );
    }
    if total.wrong_answers > 0 {
        println!(
            "lies: {} wrong answers of services; {} words said again, {} of them wrong; {} answers that nobody could check",
            total.wrong_answers, total.words_again, total.lies_found, total.unchecked_answers
        );
    }
    if crewed > 0 {
        show_crews(&total.crew);
    }
    if swarmed > 0 {
        let swarm = &total.swarm;
        println!(
            "swarms: {} devices, {:.2} copies from each coordinator, {} pieces from node to node, {} liars named",
            swarm.devices,
            swarm.fetched as f64 / swarm.pieces.max(1) as f64,
            swarm.exchanged,
            swarm.named
        );
    }
    verdict(seeds, failed)
}

fn show_crews(crew: &CrewReport) {
    println!(
        "crews: {} fields ({} spoiled where the job says that nobody checked some steps, {} where trusted liars checked), {} given up, {} epochs, {} pokes ({} times again), {} frames by relay, {} direct, {} of old epochs dropped; {} checks, {} lies found, {} steps unchecked",
        crew.fields,
        crew.wrong - crew.vouched,
        crew.vouched,
        crew.given_up,
        crew.epochs,
        crew.pokes,
        crew.pokes_again,
        crew.relayed,
        crew.direct,
        crew.stale,
        crew.checks,
        crew.lies_found,
        crew.unchecked
    );
}

/// Measures time inside the scheduler alone.
struct Stopwatch {
    since: Instant,
    total: Duration,
}

impl Probe for Stopwatch {
    fn before(&mut self) {
        self.since = Instant::now();
    }

    fn after(&mut self) {
        self.total += self.since.elapsed();
    }
}

fn crowd(nodes: u64, units: u64) {
    let start = Instant::now();
    let watch = Stopwatch { since: start, total: Duration::ZERO };
    let (report, watch) = run_probed(1, Scenario::crowd(nodes, units), watch);
    let scheduler = watch.total.as_secs_f64();
    println!(
        "{{\"nodes\":{nodes},\"units\":{},\"inputs\":{},\"scheduler_seconds\":{scheduler:.4},\"micros_per_unit\":{:.3},\"units_per_second\":{:.0},\"events_per_second\":{:.0}}}",
        report.units,
        report.inputs,
        scheduler * 1e6 / report.units as f64,
        report.units as f64 / scheduler,
        report.events as f64 / start.elapsed().as_secs_f64(),
    );
}

fn show_swarm_cost(nodes: u64, pieces: u32, parts: u32) {
    let cost = swarm_cost(nodes, pieces, parts);
    let seconds = cost.scheduler.as_secs_f64();
    println!(
        "{{\"nodes\":{nodes},\"pieces\":{},\"words\":{},\"scheduler_seconds\":{seconds:.4},\"micros_per_word\":{:.3},\"between_share\":{:.4}}}",
        cost.pieces,
        cost.words,
        seconds * 1e6 / cost.words.max(1) as f64,
        cost.between as f64 / cost.pieces.max(1) as f64,
    );
}

fn show_churn(seed: u64, rounds: u64) {
    let rounds: Vec<_> = (seed..seed + rounds).map(churn).collect();
    let mean = |of: fn(&Churn) -> f64| rounds.iter().map(of).sum::<f64>() / rounds.len() as f64;
    let worst = |of: fn(&Churn) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
    println!(
        "{{\"name\":\"churn\",\"rounds\":{},\"leaving\":{:.3},\"leaving_worst\":{:.3},\"straggler\":{:.3},\"straggler_worst\":{:.3},\"speculated\":{}}}",
        rounds.len(),
        mean(|round| round.leaving),
        worst(|round| round.leaving),
        mean(|round| round.straggler),
        worst(|round| round.straggler),
        rounds.iter().map(|round| round.speculated).sum::<u64>(),
    );
}

fn show_checking(seed: u64, nodes: u64, units_each: u64) {
    let cases = [
        ("adaptive_honest", Gang::Nobody, Verify::Adaptive, 8),
        ("adaptive_honest_undivided", Gang::Nobody, Verify::Adaptive, 64),
        ("adaptive_concert", Gang::Concert, Verify::Adaptive, 8),
        ("adaptive_mixed", Gang::Mixed, Verify::Adaptive, 8),
        ("adaptive_rare", Gang::Rare, Verify::Adaptive, 8),
        ("quorum3_concert", Gang::Concert, Verify::Quorum { votes: 3 }, 8),
        ("quorum5_concert", Gang::Concert, Verify::Quorum { votes: 5 }, 8),
    ];
    for (name, gang, verify, grain) in cases {
        let start = Instant::now();
        let case = checking(seed, nodes, gang, verify, Pool { units_each, grain });
        println!(
            "{{\"name\":\"{name}\",\"nodes\":{},\"liars\":{},\"units\":{},\"wrong\":{},\"extra_first\":{:.3},\"extra_later\":{:.3},\"liar_answers\":{:.1},\"liars_left\":{},\"seconds\":{:.1}}}",
            case.nodes,
            case.liars,
            case.units,
            case.wrong,
            case.extra_first,
            case.extra_later,
            case.liar_answers,
            case.liars_left,
            start.elapsed().as_secs_f64(),
        );
    }
}
