//! `bench offload`: a frame for the detection page's model, in the page itself and on a native node, with what crosses the
//! network for it.

use super::pool::Pool;
use super::report::{Report, least};
use super::{Plan, build, figures, load, node, number};
use crate::outside;
use crate::shell::Outcome;

/// A detector and a picture that others published.
const MATERIAL: [&str; 2] = ["yolov8n", "pictures"];
/// Frames at each place in a round, after one that is not counted.
const FRAMES: &str = "5";

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    outside::fetch_some(&MATERIAL)?;
    let names = ["local", "localRun", "remote", "remoteRun", "sent", "received", "prepare"];
    let mut found = names.map(|_| Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let mut pool = Pool::start()?;
        pool.add_node(&[])?;
        let at = &pool.running;
        let mut measure = node();
        measure.args(["e2e/bench/offload.mjs", &at.url, &at.key, FRAMES]);
        let round = figures(measure.env("SHOAL_OUTSIDE", outside::folder()))?;
        for (name, all) in names.iter().zip(&mut found) {
            all.push(number(&round, name)?);
        }
    }
    let mut report = Report::new("offload", plan.rounds);
    for (name, all) in names.iter().zip(&found) {
        report.ours(name, least(all));
    }
    report.note(
        "YOLOv8n on a photo of 810x1080; local, remote: milliseconds of a whole frame; localRun, remoteRun: those in the \
         model; sent, received: bytes of a frame on the pool; the model in the page has one thread",
    );
    report.note(load());
    Ok(report)
}
