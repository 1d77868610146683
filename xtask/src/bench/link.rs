//! `bench link`: there and back and megabytes a second between tabs and native nodes, beside a data channel by hand.

use serde_json::Value;

use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, load, node};
use crate::shell::Outcome;

const LEAST_OF_BARE: f64 = 0.8;
const BARE: &str = "tab to tab by hand";

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let pool = Pool::start()?;
    let rounds = plan.rounds.to_string();
    let words = ["e2e/bench/link.mjs", &pool.running.url, pool.token(), &rounds];
    let found = figures(node().args(words))?;
    let mut report = Report::new("link", plan.rounds);
    let (bare_trip, bare_speed) = (trip(&found, BARE)?, speed(&found, BARE)?);
    report.peer(&format!("ms there and back, {BARE}"), bare_trip);
    report.peer(&format!("MB/s, {BARE}"), bare_speed);
    let ways = found.as_object().into_iter().flatten().map(|(way, _)| way.as_str());
    for way in ways.filter(|way| *way != BARE) {
        let (trip, speed) = (trip(&found, way)?, speed(&found, way)?);
        report.ours(&format!("ms there and back, {way}"), trip);
        report.ours(&format!("MB/s, {way}"), speed);
        let ratio = format!("MB/s to the one by hand, {way}");
        if way.ends_with("directly") {
            report.ratio(&ratio, speed / bare_speed, Wanted::AtLeast(LEAST_OF_BARE));
            let fell = found[way]["fell"].as_f64().unwrap_or_default();
            report.ours(&format!("times fallen back to the relay, {way}"), fell);
            report.aside(&format!("trips to those by hand, {way}"), trip / bare_trip);
        } else if way.ends_with("by relay") {
            report.aside(&ratio, speed / bare_speed);
        }
    }
    report.note(
        "16 MiB until the other end said it has them, 4 MiB under way: 1 MiB a message, by hand 64 KiB a message; trips of 64 \
         bytes, the median of 50; the best round of each, in turn. By hand the pages do all themselves; ours hash, check and \
         by relay seal, in Workers",
    );
    report.note("`ms away`: a TCP relay before the coordinator that is late, each way between two nodes in all");
    report.note("direct links over a delayed network are not measured: this kernel has no netem");
    report.note(load());
    Ok(report)
}

fn trip(found: &Value, way: &str) -> Outcome<f64> {
    Ok(least(&numbers(found, way, "trip")?))
}

fn speed(found: &Value, way: &str) -> Outcome<f64> {
    Ok(most(&numbers(found, way, "perSecond")?))
}

fn numbers(found: &Value, way: &str, what: &str) -> Outcome<Vec<f64>> {
    let numbers = found[way][what].as_array().map(|all| all.iter().filter_map(Value::as_f64));
    numbers.map(Iterator::collect).ok_or_else(|| format!("no {what} of {way} in {found}"))
}
