//! `bench join`: what a new tab costs until its first unit is finished.

use super::pool::Pool;
use super::report::{Report, Wanted, least};
use super::{Plan, build, figures, node, number};
use crate::shell::Outcome;

const RUNS: &str = "3";
/// Compressed, on the wire, everything included.
const MOST_BYTES: f64 = 300_000.0;
const MOST_SECONDS: f64 = 1.5;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let (mut bytes, mut seconds) = (Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let pool = Pool::start()?;
        let at = &pool.running;
        let words = ["e2e/bench/join.mjs", &at.url, &at.key, &at.join, RUNS];
        let found = figures(node().args(words))?;
        bytes.push(number(&found, "bytes")?);
        seconds.push(number(&found, "seconds")?);
    }
    let mut report = Report::new("join", plan.rounds);
    let (bytes, seconds) = (least(&bytes), least(&seconds));
    report.ours("bytes", bytes);
    report.ours("seconds", seconds);
    report.judge("bytes", bytes, Wanted::AtMost(MOST_BYTES));
    report.judge("seconds", seconds, Wanted::AtMost(MOST_SECONDS));
    report.note("Chromium with SwiftShader; from navigation to the coordinator's count of the unit, GPU map");
    Ok(report)
}
