//! `bench allreduce`: four members sum 16 MiB of numbers in a ring, beside the least that can take.

use serde_json::Value;

use super::report::{Report, Wanted, least};
use super::{Plan, figures, load};
use crate::shell::{self, Outcome, cargo, command, target};

const MEMBERS: f64 = 4.0;
const MEGABYTES: f64 = (16 << 20) as f64 / 1e6;
const LEAST_OF_BOUND: f64 = 0.7;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    if !plan.is_built {
        plan.say("building");
        shell::run(cargo().args(["build", "--quiet", "--release", "--package", "xtask-relay"]))?;
    }
    let [mut one, mut every, mut sum, mut one_cpu, mut sum_cpu] = [const { Vec::new() }; 5];
    let mut dropped = Vec::new();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let folder = target().join("bench").join(format!("ring-{}", std::process::id()));
        let found =
            figures(command(target().join("release/xtask-relay")).arg("allreduce").arg(folder))?;
        one.push(seconds(&found, "one")?);
        every.push(seconds(&found, "every")?);
        sum.push(seconds(&found, "sum")?);
        one_cpu.push(seconds(&found, "one_cpu")?);
        sum_cpu.push(seconds(&found, "sum_cpu")?);
        dropped.push(found["dropped"].as_str().unwrap_or_default().to_owned());
    }
    let [one, every, sum] = [least(&one), least(&every), least(&sum)];
    let [one_cpu, sum_cpu] = [least(&one_cpu), least(&sum_cpu)];
    let share = 2.0 * (MEMBERS - 1.0) / MEMBERS;
    // All links carry their share, and each byte costs what it costs on a link alone.
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    let busy = share * MEMBERS * one_cpu / cores;
    let mut report = Report::new("allreduce", plan.rounds);
    report.ours("seconds to sum 16 MiB of f32", sum);
    report.peer("MB/s of one link alone", MEGABYTES / one);
    report.peer("MB/s of each link, all four at once", MEGABYTES / every);
    report.peer("seconds at least, links as fast as one alone", share * one);
    report.peer("seconds at least, links as fast as all at once", share * every);
    report.ours("processor seconds of members and relay, 16 MiB over one link", one_cpu);
    report.ours("processor seconds of members and relay, the sum", sum_cpu);
    report.peer("seconds at least, all cores busy with links at one link's cost", busy);
    let to_one = "to the ring's bound, links as fast as one alone";
    report.ratio(to_one, share * one / sum, Wanted::AtLeast(LEAST_OF_BOUND));
    report.aside("to the ring's bound, links as fast as all at once", share * every / sum);
    let to_machine = "to what ring and cores allow: the longer of the first and the last bound";
    report.aside(to_machine, busy.max(share * one) / sum);
    report.note(
        "real members in a thread each, with a WebSocket each, through a real coordinator's relay, sealed; the route is \
         made by hand, for a coordinator introduces two nodes at a time; a link's speed is that of one message of 16 MiB",
    );
    report.note(
        "the four links share the machine's cores: with as few as \
         here, four at once cannot each be as fast as one alone",
    );
    report.note(format!("dropped by the relay: {}", dropped.join(", ")));
    report.note(load());
    Ok(report)
}

/// Of the best run.
fn seconds(found: &Value, what: &str) -> Outcome<f64> {
    let runs = found[what].as_array().ok_or_else(|| format!("no `{what}` in {found}"))?;
    Ok(least(&runs.iter().filter_map(Value::as_f64).collect::<Vec<_>>()))
}
