//! `bench onnx-split`: a classifier in three tabs, by direct links and through the relay, beside the whole of it in one tab.

use super::pool::Pool;
use super::report::{Report, Wanted, median};
use super::{Plan, build, figures, load, node, number};
use crate::shell::Outcome;

/// Between three slices.
const HOPS: f64 = 2.0;
/// Milliseconds that a hop may cost.
const PER_HOP: f64 = 3.0;
/// Of the requests that the slowest slice could compute.
const OF_SLOWEST: f64 = 0.9;

#[derive(Default)]
struct Measured {
    sliced: Vec<f64>,
    whole: Vec<f64>,
    rate: Vec<f64>,
    of_slowest: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let (mut direct, mut relay) = (Measured::default(), Measured::default());
    for round in 1..=plan.rounds {
        for (name, way) in [("direct", &mut direct), ("relay", &mut relay)] {
            plan.say(&format!("round {round}, {name}"));
            let pool = Pool::start()?;
            let running = &pool.running;
            let words = ["e2e/bench/onnx-split.mjs", &running.url, &running.key, name];
            let found = figures(node().args(words))?;
            way.sliced.push(number(&found, "sliced")?);
            way.whole.push(number(&found, "whole")?);
            way.rate.push(number(&found, "rate")?);
            way.of_slowest.push(number(&found, "rate")? * number(&found, "slowest")? / 1_000.0);
        }
    }
    let mut report = Report::new("onnx-split", plan.rounds);
    for (name, way) in [("direct", &direct), ("relay", &relay)] {
        report.ours(&format!("ms in three slices, {name}"), median(&way.sliced));
        report.ours(&format!("ms whole in one tab, beside {name}"), median(&way.whole));
        report.ours(&format!("requests a second in three slices, {name}"), median(&way.rate));
    }
    let per_hop = |way: &Measured| {
        let more = way.sliced.iter().zip(&way.whole).map(|(sliced, whole)| (sliced - whole) / HOPS);
        median(&more.collect::<Vec<_>>())
    };
    report.ratio("ms more than whole per hop, direct", per_hop(&direct), Wanted::AtMost(PER_HOP));
    report.aside("ms more than whole per hop, relay", per_hop(&relay));
    let share = median(&direct.of_slowest);
    report.ratio("of what the slowest slice allows, direct", share, Wanted::AtLeast(OF_SLOWEST));
    report.aside("of what the slowest slice allows, relay", median(&relay.of_slowest));
    report.note(
        "three tabs of one Chromium; requests come by HTTP from another process and are asked in turn, slices and whole; \
         with six under way for the rate. Tabs, coordinator and client share the machine's cores",
    );
    report.note(load());
    Ok(report)
}
