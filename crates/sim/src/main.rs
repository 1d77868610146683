//! Runs worlds: `shoal-sim --seeds 200`, one again with `--seed 17`; or measures: `--crowd 10000` what scheduling
//! costs, `--churn` how a pool copes with leaving and slow nodes, `--verify` what checking costs and catches.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use shoal_protocol::Verify;
use shoal_sim::{
    Churn, CrewReport, Gang, Pool, Probe, Report, Scenario, SwarmReport, checking, churn, crew,
    run, run_probed, swarm,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = number("--crew-seed") {
        println!("{:#?}", crew(seed));
        return ExitCode::SUCCESS;
    }
    if let Some(seeds) = number("--crews") {
        return crews(number("--from").unwrap_or(0), seeds);
    }
    if let Some(seed) = number("--swarm-seed") {
        println!("{:#?}", swarm(seed));
        return ExitCode::SUCCESS;
    }
    if let Some(seeds) = number("--swarms") {
        return swarms(number("--from").unwrap_or(0), seeds);
    }
    if let Some(seed) = number("--seed") {
        println!("{:#?}", run(seed));
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
    let from = number("--from").unwrap_or(0);
    many(from, number("--seeds").unwrap_or(200))
}

/// Runs a world for each seed; how many failed. `again` is the flag that runs one of them again.
fn each<R>(from: u64, seeds: u64, again: &str, run: fn(u64) -> R, mut add: impl FnMut(R)) -> u64 {
    let mut failed = 0;
    for seed in from..from + seeds {
        match std::panic::catch_unwind(|| run(seed)) {
            Ok(report) => add(report),
            Err(_) => {
                println!("seed {seed} failed; again: cargo xtask sim {again} {seed}");
                failed += 1;
            }
        }
    }
    failed
}

fn verdict(seeds: u64, failed: u64) -> ExitCode {
    println!("{} passed, {failed} failed", seeds - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Worlds with a crew each.
fn crews(from: u64, seeds: u64) -> ExitCode {
    let start = Instant::now();
    let mut total = CrewReport::default();
    let failed = each(from, seeds, "--crew-seed", crew, |report| {
        total.events += report.events;
        total.epochs += report.epochs;
        total.faults += report.faults;
        total.crashes += report.crashes;
        total.strokes += report.strokes;
        total.strokes_again += report.strokes_again;
        total.relayed += report.relayed;
        total.direct += report.direct;
        total.stale += report.stale;
    });
    println!(
        "{seeds} crews in {:.1} s: {} events, {} epochs, {} faults, {} crashes, {} strokes ({} times again), {} frames by relay, {} direct, {} of old epochs dropped",
        start.elapsed().as_secs_f64(),
        total.events,
        total.epochs,
        total.faults,
        total.crashes,
        total.strokes,
        total.strokes_again,
        total.relayed,
        total.direct,
        total.stale
    );
    verdict(seeds, failed)
}

/// Worlds in which devices exchange one blob.
fn swarms(from: u64, seeds: u64) -> ExitCode {
    let start = Instant::now();
    let mut total = SwarmReport::default();
    let failed = each(from, seeds, "--swarm-seed", swarm, |report| {
        total.events += report.events;
        total.fetched += report.fetched;
        total.exchanged += report.exchanged;
        total.pieces += report.pieces;
        total.devices += report.devices;
        total.faults += report.faults;
        total.named += report.named;
    });
    println!(
        "{seeds} swarms of {} devices in {:.1} s: {} events, {} faults, {} liars named; {:.2} copies from each coordinator, {} pieces from node to node",
        total.devices,
        start.elapsed().as_secs_f64(),
        total.events,
        total.faults,
        total.named,
        total.fetched as f64 / total.pieces.max(1) as f64,
        total.exchanged
    );
    verdict(seeds, failed)
}

fn many(from: u64, seeds: u64) -> ExitCode {
    let start = Instant::now();
    let mut total = Report::default();
    let mut crowds = 0;
    let failed = each(from, seeds, "--seed", run, |report| {
        crowds += u64::from(report.nodes >= 1_000);
        total.events += report.events;
        total.units += report.units;
        total.crashes += report.crashes;
        total.faults += report.faults;
        total.deeds += report.deeds;
        total.rejected += report.rejected;
        total.honest_rejected += report.honest_rejected;
        total.unmerged += report.unmerged;
        total.speculated += report.speculated;
        total.wrong += report.wrong;
    });
    println!(
        "{seeds} seeds ({crowds} with 1,000 to 10,000 nodes) in {:.1} s: {} events, {} units, {} faults, {} hostile deeds, {} crashes, {} copies of late units",
        start.elapsed().as_secs_f64(),
        total.events,
        total.units,
        total.faults,
        total.deeds,
        total.crashes,
        total.speculated
    );
    println!(
        "{} lies found ({} of honest nodes), {} units computed again, {} wrong when delivered (where the policy allows it)",
        total.rejected, total.honest_rejected, total.unmerged, total.wrong
    );
    verdict(seeds, failed)
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
