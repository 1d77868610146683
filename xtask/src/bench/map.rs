//! `bench map`: 64 Mi numbers through the wave kernel, against the same kernel without Shoal.

use std::path::Path;
use std::time::Instant;

use super::pool::Pool;
use super::report::{Report, Wanted, least};
use super::{Plan, build, figures, node, number};
use crate::shell::{Outcome, cargo, command, output, root, run as run_command, target};

const ITEMS: &str = "67108864";
/// Runs in one round, of which the best counts: the first also warms up.
const RUNS: &str = "3";
const KERNEL: &str = "examples/kernels/wave.wgsl";

/// Seconds of each round.
#[derive(Default)]
struct Times {
    native: Vec<f64>,
    native_upload: Vec<f64>,
    native_download: Vec<f64>,
    direct: Vec<f64>,
    files: Vec<f64>,
    direct_files: Vec<f64>,
    tab: Vec<f64>,
    by_hand: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    run_command(cargo().args(["build", "--quiet", "--release", "--package", "xtask-direct"]))?;
    let mut times = Times::default();
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: wgpu alone, native node, page by hand, tab"));
        times.direct.push(direct(&[])?);
        native(&mut times)?;
        from_file_to_file(&mut times)?;
        times.by_hand.push(number(
            &figures(node().args(["e2e/bench/by-hand.mjs", ITEMS, RUNS]))?,
            "seconds",
        )?);
        times.tab.push(tab()?);
    }
    Ok(report(plan, &times))
}

fn report(plan: &Plan, times: &Times) -> Report {
    let [native, direct] = [&times.native, &times.direct].map(|times| least(times));
    let [tab, by_hand] = [&times.tab, &times.by_hand].map(|times| least(times));
    let whole = native + least(&times.native_upload) + least(&times.native_download);
    let [files, direct_files] = [&times.files, &times.direct_files].map(|times| least(times));
    let mut report = Report::new("map", plan.rounds);
    report.ours("nativeSeconds", native);
    report.ours("nativeWithUploadAndDownloadSeconds", whole);
    report.ours("fileToFileSeconds", files);
    report.ours("tabSeconds", tab);
    report.peer("directSeconds", direct);
    report.peer("directFileToFileSeconds", direct_files);
    report.peer("pageByHandSeconds", by_hand);
    report.ratio("nativeToDirect", direct / native, Wanted::AtLeast(0.8));
    report.ratio("tabToPageByHand", by_hand / tab, Wanted::AtLeast(0.7));
    report.aside("fileToFileToDirect", direct_files / files);
    report.aside("nativeWithUploadAndDownloadToDirect", direct / whole);
    report.note(
        "ours: from submitting (input already stored) to all results stored durably by the coordinator; \
         peers: array to array in memory, devices and pipelines warm",
    );
    report.note(
        "file to file: `shoal map` from its start to its end, beside its coordinator and the node of `shoal up`; \
         the peer reads the input and writes the output itself",
    );
    report
}

/// The same kernel with wgpu in one process.
fn direct(files: &[&Path]) -> Outcome<f64> {
    let program = target().join("release/xtask-direct");
    let mut direct = command(program);
    let text = output(direct.arg(root().join(KERNEL)).args([ITEMS, RUNS]).args(files))?;
    let times: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    if times.is_empty() { Err(format!("xtask-direct printed `{text}`")) } else { Ok(least(&times)) }
}

fn native(times: &mut Times) -> Outcome {
    let mut pool = Pool::start()?;
    pool.add_node(&[])?;
    let at = &pool.running;
    let found = figures(node().args(["e2e/bench/map.mjs", &at.url, &at.key, ITEMS, RUNS]))?;
    times.native.push(number(&found, "seconds")?);
    times.native_upload.push(number(&found, "upload")?);
    times.native_download.push(number(&found, "download")?);
    Ok(())
}

/// `shoal map` over a file, with a new input each time, and the same with wgpu alone.
fn from_file_to_file(times: &mut Times) -> Outcome {
    let mut pool = Pool::start()?;
    pool.add_own_node()?;
    let (input, output) = (pool.file("input.f32"), pool.file("output.f32"));
    let items: u32 = ITEMS.parse().map_err(|_| "the number of items is no number")?;
    let runs: u32 = RUNS.parse().map_err(|_| "the number of runs is no number")?;
    for run in 0..runs {
        let numbers = (0..items).flat_map(|at| (((at + run) as f32) * 1e-3 % 1e3).to_le_bytes());
        let bytes: Vec<u8> = numbers.collect();
        std::fs::write(&input, bytes).map_err(|error| format!("the input: {error}"))?;
        let kernel = root().join(KERNEL);
        let mut map = pool.client(&["map", "--raw", "f32", "--quiet"]);
        map.arg("--data").arg(pool.data()).arg("-o").arg(&output).arg(kernel).arg(&input);
        let start = Instant::now();
        run_command(&mut map)?;
        times.files.push(start.elapsed().as_secs_f64());
    }
    times.direct_files.push(direct(&[&input, &output])?);
    Ok(())
}

fn tab() -> Outcome<f64> {
    let pool = Pool::start()?;
    let at = &pool.running;
    let words = ["e2e/bench/map.mjs", &at.url, &at.key, ITEMS, RUNS, &at.join];
    number(&figures(node().args(words))?, "seconds")
}
