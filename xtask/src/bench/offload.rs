//! `bench offload`: a frame for the detection page's model, in the page itself, on a native node, and split over two, with what
//! crosses the network for it.

use super::pool::Pool;
use super::report::{Report, Wanted, least};
use super::{Plan, build, figures, load, node, number};
use crate::outside;
use crate::shell::Outcome;

/// A detector and a picture that others published.
const MATERIAL: [&str; 2] = ["yolov8n", "pictures"];
/// A frame as pixels of 8 bits, as large as the model sees it: 640 x 480 of a photo that is higher than wide, and what is said
/// beside them. As floats it would be 4.9 MB.
const MOST_SENT: f64 = 1_000_000.0;
/// Boxes, and no tensors.
const MOST_RECEIVED: f64 = 2_000.0;
/// Frames at each place in a round, after one that is not counted.
const FRAMES: &str = "5";

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    outside::fetch_some(&MATERIAL)?;
    let names = [
        "local",
        "localRun",
        "remote",
        "remoteRun",
        "split",
        "splitRun",
        "sent",
        "received",
        "localSent",
        "localReceived",
        "splitSent",
        "splitReceived",
        "between",
        "prepare",
    ];
    let mut found = names.map(|_| Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let mut pool = Pool::start()?;
        // Two for the slices; one of them has the whole model as well.
        (0..2).try_for_each(|_| pool.add_node(&[]))?;
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
    for (name, most) in [("sent", MOST_SENT), ("received", MOST_RECEIVED)] {
        let at = names.iter().position(|known| *known == name).unwrap_or_default();
        report.judge(name, least(&found[at]), Wanted::AtMost(most));
    }
    report.note(
        "YOLOv8n on a photo of 810x1080; local, remote, split: milliseconds of a whole frame; localRun, remoteRun, splitRun: \
         those in the model; sent, received: bytes of a frame between page and pool (remote; the other places are named); \
         between: those that one slice hands the other; the model in the page has one thread; both nodes share the \
         machine's cores",
    );
    report.note(load());
    Ok(report)
}
