//! `bench sim`: what the scheduler itself costs, with ten thousand nodes.

use super::report::{Report, Wanted, least, most};
use super::{Plan, figures, number};
use crate::shell::Outcome;
use crate::sim::simulator;

const NODES: &str = "10000";
const UNITS: &str = "1000000";

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    let (mut units, mut events, mut micros) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let found = figures(simulator().args(["--crowd", NODES, "--units", UNITS]))?;
        units.push(number(&found, "units_per_second")?);
        events.push(number(&found, "events_per_second")?);
        micros.push(number(&found, "micros_per_unit")?);
    }
    let mut report = Report::new("sim", plan.rounds);
    report.ours("unitsPerSecond", most(&units));
    report.ours("eventsPerSecond", most(&events));
    report.ours("schedulerMicrosPerUnit", least(&micros));
    report.judge("schedulerMicrosPerUnit", least(&micros), Wanted::AtMost(10.0));
    report.note("simulated: virtual time, 10,000 node brains and the scheduler in one thread");
    Ok(report)
}
