//! `bench relay`: two clients through the coordinator, by WebSocket and by QUIC, beside a bare TCP relay and one in Python, in turn.

use std::path::PathBuf;

use serde_json::Value;

use super::report::{Report, Wanted, least, most};
use super::{Plan, figures, number};
use crate::shell::{self, Outcome, cargo, command, root, target};
use crate::venv::Venv;

const PYTHON: Venv = Venv { name: "relay-venv", packages: &["websockets"] };
const SIZES: [&str; 2] = ["64KiB", "1MiB"];
const LEAST_OF_PYTHON: f64 = 2.0;
const LEAST_OF_COPY: f64 = 0.8;
/// Microseconds there and back together, so each way has half of it.
const MOST_ADDED: f64 = 60.0;
/// What one stalled receiver may add: its own queue, one window and a little, and as much again for what the
/// allocator keeps.
const MOST_GROWTH: f64 = 10e6;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    install(plan)?;
    plan.say("building");
    shell::run(cargo().args(["build", "--quiet", "--release", "--package", "xtask-relay"]))?;
    let mut rounds = Vec::new();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let script = root().join("xtask/relay/relay.py");
        let mut measure = clients("measure");
        measure.arg(PYTHON.python()).arg(script).arg(folder());
        rounds.push(figures(&mut measure)?);
    }
    let mut report = Report::new("relay", plan.rounds);
    throughput(&mut report, &rounds)?;
    latency(&mut report, &rounds)?;
    sealing(&mut report)?;
    plan.say("fifty receivers, one of them stalled");
    stalled(&mut report)?;
    report.note(
        "all ways carry the same messages with at most a link's window on the way; `masked` is as a browser sends; \
         by QUIC everything is sealed by TLS on both sides of the relay, by WebSocket on one machine nothing is",
    );
    Ok(report)
}

fn throughput(report: &mut Report, rounds: &[Value]) -> Outcome {
    for size in SIZES {
        let best = |way: &str| all(rounds, way, size).map(|found| most(&found));
        let (ours, masked, copy) = (best("ours")?, best("oursMasked")?, best("copy")?);
        let (python, none) = (best("python")?, best("none")?);
        report.ours(&format!("MB/s of {size} frames"), ours);
        report.ours(&format!("MB/s of {size} frames, masked"), masked);
        report.peer(&format!("MB/s of {size}, bare TCP relay"), copy);
        report.peer(&format!("MB/s of {size}, Python websockets"), python);
        report.peer(&format!("MB/s of {size}, no relay"), none);
        report.ratio(
            &format!("to Python, {size}"),
            ours / python,
            Wanted::AtLeast(LEAST_OF_PYTHON),
        );
        let to_copy = format!("to the bare TCP relay, {size}");
        report.ratio(&to_copy, ours / copy, Wanted::AtLeast(LEAST_OF_COPY));
        report.aside(&format!("to the bare TCP relay, {size}, masked"), masked / copy);
        let quic = best("quic")?;
        report.ours(&format!("MB/s of {size} frames, by QUIC"), quic);
        report.aside(&format!("by QUIC to by WebSocket, {size}"), quic / ours);
        let cpu = format!("{size} processor seconds per GB");
        report.ours(&cpu, least(&all(rounds, "ours", &cpu)?));
        report.ours(&format!("{cpu}, by QUIC"), least(&all(rounds, "quic", &cpu)?));
        report.peer(&format!("{cpu}, bare TCP relay"), least(&all(rounds, "copy", &cpu)?));
    }
    Ok(())
}

fn latency(report: &mut Report, rounds: &[Value]) -> Outcome {
    let best = |way: &str| all(rounds, way, "trip").map(|found| least(&found));
    let (ours, none) = (best("ours")?, best("none")?);
    report.ours("us there and back, 4 KiB", ours);
    report.ours("us there and back, 4 KiB, by QUIC", best("quic")?);
    report.peer("us there and back, 4 KiB, no relay", none);
    report.peer("us there and back, 4 KiB, bare TCP relay", best("copy")?);
    report.peer("us there and back, 4 KiB, Python websockets", best("python")?);
    report.ours("us added there and back", ours - none);
    report.judge("us added there and back", ours - none, Wanted::AtMost(MOST_ADDED));
    Ok(())
}

fn sealing(report: &mut Report) -> Outcome {
    let found = figures(&mut clients("sealing"))?;
    report.ours("MB/s sealed by one end", number(&found, "seal")?);
    report.ours("MB/s opened by the other", number(&found, "open")?);
    Ok(())
}

fn stalled(report: &mut Report) -> Outcome {
    let found = figures(clients("stalled").arg(folder()))?;
    let (healthy, stalled) = (&found["healthy"], &found["stalled"]);
    let growth = number(stalled, "after")? - number(stalled, "warm")?;
    report.ours("bytes of memory with one stalled of 50", number(stalled, "after")?);
    report.ours("bytes of memory with none stalled", number(healthy, "after")?);
    report.ours("bytes grown while one stalled", growth);
    report.judge("bytes grown while one stalled", growth, Wanted::AtMost(MOST_GROWTH));
    let others = number(stalled, "perSecond")? / number(healthy, "perSecond")?;
    report.aside("the others' MB/s with one stalled, to none stalled", others);
    Ok(())
}

/// A figure of one way, in every round.
fn all(rounds: &[Value], way: &str, what: &str) -> Outcome<Vec<f64>> {
    rounds.iter().map(|round| number(&round[way], what)).collect()
}

fn clients(verb: &str) -> std::process::Command {
    let mut clients = command(target().join("release/xtask-relay"));
    clients.arg(verb);
    clients
}

fn folder() -> PathBuf {
    target().join("bench").join(format!("relay-{}", std::process::id()))
}

fn install(plan: &Plan) -> Outcome {
    if !PYTHON.is_ready() {
        plan.say("installing websockets from PyPI");
    }
    PYTHON.install()
}
