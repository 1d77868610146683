//! `bench upgrade`: how soon two tabs that joined hear each other, and how soon they do so directly.

use super::pool::Pool;
use super::report::{Report, least, median};
use super::{Plan, build, figures, load, node, number};
use crate::shell::Outcome;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let [mut joined, mut relayed, mut first, mut direct] = [const { Vec::new() }; 4];
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let pool = Pool::start()?;
        let words = ["e2e/bench/upgrade.mjs", &pool.running.url, pool.token()];
        let found = figures(node().args(words))?;
        joined.push(number(&found, "joined")?);
        relayed.push(number(&found, "relayed")?);
        first.push(number(&found, "first")?);
        direct.push(number(&found, "direct")?);
    }
    let mut report = Report::new("upgrade", plan.rounds);
    for (what, times) in [
        ("ms to join, second tab", &joined),
        ("ms from both joined to the first relayed message", &relayed),
        ("ms from both joined to the direct link at one end", &first),
        ("ms from both joined to the direct link at both ends", &direct),
    ] {
        report.ours(&format!("{what}, best"), least(times));
        report.ours(&format!("{what}, median"), median(times));
    }
    report.note(
        "two tabs of one Chromium, each with a mesh of its own; the second calls the first as soon as it joined, and the \
         message waits for the key agreement; no STUN server",
    );
    report.note(load());
    Ok(report)
}
