//! `bench onnx`: a detector and a classifier through Shoal on one native node, in turn with ONNX Runtime called directly
//! in Python; and in a page, in turn with onnxruntime-web by hand in the same Chromium.

use super::pool::Pool;
use super::report::{Report, Wanted, least};
use super::{Plan, build, figures, load, node, number};
use crate::outside;
use crate::shell::{Outcome, command, output, root};
use crate::venv::Venv;

/// The library that the node loads is of the same version.
const PEER: Venv = Venv { name: "onnx-venv", packages: &["onnxruntime==1.31.1", "numpy"] };
const LIBRARY: &str = "onnxruntime/onnxruntime/capi/libonnxruntime.so.1.31.1";
/// What lies between the two beside the model: a request of 4.9 MB there, an answer of 2.8 MB back.
const ABOVE_MILLIS: f64 = 1.0;
const MOST_TIMES: f64 = 1.1;
/// Between answers; larger is not rounding.
const MOST_DIFFERENCE: f64 = 0.01;
/// One thread on both sides: the machine's other core carries the client and the coordinator.
const THREADS: &str = "1";

struct Model {
    name: &'static str,
    file: &'static str,
    /// Of the pictures, where the file leaves height and width open.
    side: &'static str,
    runs: &'static str,
    /// The same in a page, where a run takes longer.
    page_runs: &'static str,
}

const MODELS: [Model; 2] = [
    Model {
        name: "yolov8n",
        file: "yolov8n/package/lib/model/yolov8n.onnx",
        side: "640",
        runs: "40",
        page_runs: "20",
    },
    Model {
        name: "mobilenetv2",
        file: "mobilenetv2/mobilenetv2.onnx",
        side: "224",
        runs: "200",
        page_runs: "100",
    },
];

/// Milliseconds of each round.
#[derive(Default)]
struct Times {
    direct: Vec<f64>,
    ours: Vec<f64>,
    built_in: Vec<f64>,
    ratios: Vec<f64>,
    page: PageTimes,
}

/// The same in a browser.
#[derive(Default)]
struct PageTimes {
    ours: Vec<f64>,
    by_hand: Vec<f64>,
    built_in: Vec<f64>,
    ratios: Vec<f64>,
}

impl PageTimes {
    /// One round, with a coordinator and a Chromium of its own.
    fn add(&mut self, model: &Model) -> Outcome {
        let pool = Pool::start()?;
        let at = &pool.running;
        let file = outside::folder().join(model.file).display().to_string();
        let words = [&at.url, &at.key, model.name, &file, model.side, model.page_runs];
        let found = figures(node().arg("e2e/bench/onnx-tab.mjs").args(words))?;
        let difference = number(&found, "difference")?;
        if difference > MOST_DIFFERENCE {
            return Err(format!("{}: the answers in pages differ by {difference}", model.name));
        }
        let (ours, by_hand) = (number(&found, "ours")?, number(&found, "hand")?);
        self.ours.push(ours);
        self.by_hand.push(by_hand);
        self.built_in.push(number(&found, "builtIn")?);
        self.ratios.push(ours / by_hand);
        Ok(())
    }

    fn tell(&self, model: &Model, report: &mut Report) {
        let named = |what: &str| format!("{}{what}", model.name);
        report.ours(&named("PageMillis"), least(&self.ours));
        report.ours(&named("PageBuiltInMillis"), least(&self.built_in));
        report.peer(&named("PageByHandMillis"), least(&self.by_hand));
        let ratio = least(&self.ratios);
        report.ratio(&named("PageToByHand"), ratio, Wanted::AtMost(MOST_TIMES));
        report.note(each_round(&named("PageToByHand"), &self.ratios));
    }
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    outside::fetch_some(&["yolov8n", "mobilenetv2", "onnxruntime"])?;
    PEER.install()?;
    let library = outside::folder().join(LIBRARY).display().to_string();
    let mut report = Report::new("onnx", plan.rounds);
    for model in &MODELS {
        let mut times = Times::default();
        for round in 1..=plan.rounds {
            plan.say(&format!("round {round}: {}", model.name));
            let (direct, ours) = through(model, &["--onnxruntime", &library])?;
            times.direct.push(direct);
            times.ours.push(ours);
            times.ratios.push((ours - ABOVE_MILLIS) / direct);
            let (direct, built_in) = through(model, &["--onnxruntime", "none"])?;
            times.direct.push(direct);
            times.built_in.push(built_in);
            times.page.add(model)?;
        }
        let named = |what: &str| format!("{}{what}", model.name);
        report.ours(&named("Millis"), least(&times.ours));
        report.ours(&named("BuiltInMillis"), least(&times.built_in));
        report.peer(&named("DirectMillis"), least(&times.direct));
        let ratio = least(&times.ratios);
        report.ratio(&named("LessOneMillisToDirect"), ratio, Wanted::AtMost(MOST_TIMES));
        report.aside(&named("BuiltInToDirect"), least(&times.built_in) / least(&times.direct));
        report.note(each_round(&named("LessOneMillisToDirect"), &times.ratios));
        times.page.tell(model, &mut report);
    }
    report.note("one native node over loopback, one picture at a time (640x640 and 224x224), FP32 as bytes; medians of runs in turn with onnxruntime in Python, one thread on both sides");
    report.note("the node chooses its engine itself; BuiltIn: a node without ONNX Runtime");
    report.note("Page: a model in a page, in turns with onnxruntime-web by hand in another page of the same Chromium, one thread on both sides");
    report.note(load());
    Ok(report)
}

/// The best round is judged, because others are disturbed by what else the machine does; all are shown.
fn each_round(what: &str, ratios: &[f64]) -> String {
    let all: Vec<_> = ratios.iter().map(|ratio| format!("{ratio:.3}")).collect();
    format!("{what} in each round: {}", all.join(" "))
}

/// Median milliseconds directly and through a node with these flags.
fn through(model: &Model, flags: &[&str]) -> Outcome<(f64, f64)> {
    let mut pool = Pool::start()?;
    let key = pool.running.key.clone();
    pool.add_node(&[&["--no-gpu", "--cpus", THREADS, "--key", &key], flags].concat())?;
    let file = outside::folder().join(model.file).display().to_string();
    output(&mut pool.client(&["model", "add", &file, "--name", model.name]))?;
    let mut python = command(PEER.python());
    python.arg(root().join("xtask/src/bench/onnx.py")).arg(&file);
    python.args([model.name, model.side, model.runs, THREADS, &pool.running.url, &key]);
    let found = figures(&mut python)?;
    let difference = number(&found, "difference")?;
    if difference > MOST_DIFFERENCE {
        return Err(format!("{}: the answers differ by {difference}", model.name));
    }
    Ok((number(&found, "direct")?, number(&found, "through")?))
}
