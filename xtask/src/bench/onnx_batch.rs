//! `bench onnx-batch`: a classifier over 2,000 pictures, by a tab and a native node together, against each alone.

use super::pool::Pool;
use super::report::{Report, Wanted};
use super::{Plan, build, figures, node, number};
use crate::outside;
use crate::shell::Outcome;

const PICTURES: &str = "2000";
/// Runs in one round, of which the best counts, after one that loads the model.
const RUNS: &str = "3";
/// A thread each: two cores for both together.
const NODE: [&str; 3] = ["--no-gpu", "--cpus", "1"];

/// Pictures per second of each round.
#[derive(Default)]
struct Rates {
    native: Vec<f64>,
    tab: Vec<f64>,
    both: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    outside::fetch_some(&["cifar10"])?;
    let mut rates = Rates::default();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: native node, tab, both"));
        rates.native.push(measured(true, false)?);
        rates.tab.push(measured(false, true)?);
        rates.both.push(measured(true, true)?);
    }
    Ok(report(plan, &rates))
}

fn report(plan: &Plan, rates: &Rates) -> Report {
    let most = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    let (native, tab, both) = (most(&rates.native), most(&rates.tab), most(&rates.both));
    let mut report = Report::new("onnx-batch", plan.rounds);
    report.ours("picturesPerSecond", both);
    report.peer("nativeAlone", native);
    report.peer("tabAlone", tab);
    report.ratio("togetherToSum", both / (native + tab), Wanted::AtLeast(0.85));
    report.note(
        "from submitting (pictures already stored) to all rows stored durably by the coordinator, which shares the \
         cores with both nodes; one thread each, answers not checked",
    );
    report
}

/// With a native node, a tab, or both.
fn measured(with_native: bool, with_tab: bool) -> Outcome<f64> {
    let mut pool = Pool::start()?;
    if with_native {
        pool.add_node(&NODE)?;
    }
    let at = &pool.running;
    let mut words = vec!["e2e/bench/onnx-batch.mjs", &at.url, &at.key, PICTURES, RUNS];
    if with_tab {
        words.push(&at.join);
    }
    let found = figures(node().env("SHOAL_OUTSIDE", outside::folder()).args(words))?;
    let (nodes, expected) =
        (number(&found, "nodes")? as usize, usize::from(with_native) + usize::from(with_tab));
    if nodes != expected {
        return Err(format!("{nodes} nodes had a part in the job, not {expected}"));
    }
    number(&found, "perSecond")
}
