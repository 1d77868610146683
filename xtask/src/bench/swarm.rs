//! `bench swarm`: what it costs the scheduler to see a blob of 1 GiB to a hundred nodes, in pieces.

use super::report::{Report, Wanted, least};
use super::{Plan, figures, load, number};
use crate::shell::Outcome;
use crate::sim::simulator;

const NODES: &str = "100";
const PIECES: &str = "1024";
/// Seconds of one core, for all nodes together: a coordinator has other things to do.
const MOST_SECONDS: f64 = 2.0;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    let mut report = Report::new("swarm", plan.rounds);
    for (parts, mode) in [("1", "whole"), ("10", "tenths")] {
        let (mut seconds, mut between) = (Vec::new(), 0.0);
        for round in 1..=plan.rounds {
            plan.say(&format!("round {round}: {mode}"));
            let words = ["--swarm-cost", NODES, "--pieces", PIECES, "--parts", parts];
            let found = figures(simulator().args(words))?;
            seconds.push(number(&found, "scheduler_seconds")?);
            between = number(&found, "between_share")?;
            report.ours(&format!("microsPerWord, {mode}"), number(&found, "micros_per_word")?);
        }
        let name = format!("schedulerSeconds, {mode}");
        report.ours(&name, least(&seconds));
        report.judge(&name, least(&seconds), Wanted::AtMost(MOST_SECONDS));
        report.aside(&format!("fromNodeToNode, {mode}"), between);
    }
    report.note(
        "the scheduler alone: 100 nodes that do at once what they are told, 1 GiB in 1,024 pieces",
    );
    report.note("tenths: each node needs one tenth of the blob, ten nodes the same one");
    report.note(load());
    Ok(report)
}
