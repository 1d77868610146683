//! `bench churn`: a job of a minute on 8 nodes while they come and go, and with one that is slow.

use super::report::{Report, Wanted};
use super::{Plan, figures, number};
use crate::shell::Outcome;
use crate::sim::simulator;

const MOST_LEAVING: f64 = 1.3;
const MOST_SLOW: f64 = 1.15;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    let rounds = plan.rounds.to_string();
    plan.say(&format!("{rounds} seeds"));
    let found = figures(simulator().args(["--churn", "--rounds", &rounds]))?;
    let mut report = Report::new("churn", plan.rounds);
    report.ours("copiesOfLateUnits", number(&found, "speculated")?);
    report.aside("leavingToIdealOnAverage", number(&found, "leaving")?);
    report.aside("oneSlowToIdealOnAverage", number(&found, "straggler")?);
    // The worst seed: a promise is about every job.
    report.ratio("leavingToIdeal", number(&found, "leaving_worst")?, Wanted::AtMost(MOST_LEAVING));
    report.ratio("oneSlowToIdeal", number(&found, "straggler_worst")?, Wanted::AtMost(MOST_SLOW));
    report.note("ideal: the work divided by the capacity that was there; a node leaves every 5 s for 8 s, or one is 10 times slower");
    report.note("virtual time: the real scheduler and node brains, 2 to 20 ms between them; 8 real processes would share this machine's cores and measure only those");
    Ok(report)
}
