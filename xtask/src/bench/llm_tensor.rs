//! `bench llm-tensor`: a language model on two nodes of this machine, each with some of its layers or with some rows of
//! every matrix, so that the choice between the two is shown by figures.

use super::llm_split::{measure, measure_late};
use super::report::{Report, most};
use super::{Plan, build, load};
use crate::outside;
use crate::shell::Outcome;

const WAYS: [&str; 2] = ["layers", "tensors"];
/// From node to node, in milliseconds.
const LATE: u32 = 1;

/// Figures of one way.
#[derive(Default)]
struct Found {
    alone: Vec<f64>,
    eight: Vec<f64>,
    relayed: Vec<f64>,
    late: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-tensor", plan.rounds);
    let (mut one, mut found) = (Vec::new(), [Found::default(), Found::default()]);
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: one node"));
        one.push(measure(1, 1, WAYS[0])?.0);
        for (way, found) in WAYS.into_iter().zip(&mut found) {
            plan.say(&format!("round {round}: two nodes by {way}"));
            let (alone, eight, _) = measure(2, 1, way)?;
            found.alone.push(alone);
            found.eight.push(eight);
            found.relayed.push(measure_late(0, way)?);
            found.late.push(measure_late(LATE, way)?);
        }
    }
    report.ours("onePerSecond", most(&one));
    for (way, found) in WAYS.into_iter().zip(&found) {
        report.ours(&format!("{way}PerSecond"), most(&found.alone));
        report.ours(&format!("{way}EightPerSecond"), most(&found.eight));
        report.ours(&format!("{way}RelayedPerSecond"), most(&found.relayed));
        report.ours(&format!("{way}Late{LATE}PerSecond"), most(&found.late));
    }
    report.note("native nodes with one thread each, on both cores of one machine; links by loopback, directly");
    report.note(format!(
        "relayed: frames by the coordinator; late: the same behind a proxy that delays every byte, {LATE} ms from node to node"
    ));
    report.note(
        "tokens a second as a client sees them, over HTTP; eight: of eight conversations together",
    );
    report.note(load());
    Ok(report)
}
