//! `bench verify`: what checking answers costs, and how many lies get through.

use serde_json::Value;

use super::report::{Report, Wanted, most};
use super::{Plan, number};
use crate::shell::{Outcome, output};
use crate::sim::simulator;

const NODES: &str = "1000";
/// Of work that nobody asked for, once nodes are known.
const MOST_EXTRA: f64 = 0.1;
/// Of ten thousand units under `adaptive`.
const MOST_WRONG: f64 = 1.0;
/// Answers of a liar before it is out, on average.
const MOST_ANSWERS: f64 = 20.0;

/// Cases of every round: each line the simulator printed.
struct Found(Vec<Value>);

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    let mut found = Found(Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: a world of {NODES} nodes for each policy"));
        let text = output(
            simulator().args(["--verify", "--nodes", NODES, "--from"]).arg(round.to_string()),
        )?;
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let case = serde_json::from_str(line).map_err(|error| format!("`{line}`: {error}"))?;
            found.0.push(case);
        }
    }
    let mut report = Report::new("verify", plan.rounds);
    for (what, case) in
        [("extraWork", "adaptive_honest"), ("extraWorkUndivided", "adaptive_honest_undivided")]
    {
        let extra = most(&found.all(case, "extra_later")?);
        report.ours(what, extra);
        report.judge(what, extra, Wanted::AtMost(MOST_EXTRA));
        report.ours(&format!("{what}WhileNew"), most(&found.all(case, "extra_first")?));
    }
    for (what, case) in [("quorum3Wrong", "quorum3_concert"), ("quorum5Wrong", "quorum5_concert")] {
        let wrong = found.sum(case, "wrong")?;
        report.ours(what, wrong);
        report.judge(what, wrong, Wanted::AtMost(0.0));
    }
    for kind in ["concert", "mixed", "rare"] {
        let case = format!("adaptive_{kind}");
        let wrong = found.sum(&case, "wrong")? / found.sum(&case, "units")? * 1e4;
        let what = format!("{kind}WrongPer10000");
        report.ours(&what, wrong);
        report.judge(&what, wrong, Wanted::AtMost(MOST_WRONG));
        let answers = found.sum(&case, "liar_answers")? / plan.rounds as f64;
        let what = format!("{kind}AnswersUntilOut");
        report.ours(&what, answers);
        // Who lies once in ten answers gives ten times as many before it has lied as often.
        if kind != "rare" {
            report.judge(&what, answers, Wanted::AtMost(MOST_ANSWERS));
        }
        report.ours(&format!("{kind}LiarsLeft"), found.sum(&case, "liars_left")?);
    }
    report.note("simulated: 1,000 node brains in virtual time, a fifth of them liars; the worst round of extra work, sums of all rounds for the rest");
    report.note("concert: all tell the same lie, half of them only once trusted; mixed: also random, subtle and repeated answers; rare: in concert, one lie in ten answers");
    report.note("undivided: units whose parts cannot be checked alone, so that each check computes a whole unit");
    Ok(report)
}

impl Found {
    fn all(&self, case: &str, field: &str) -> Outcome<Vec<f64>> {
        let lines = self.0.iter().filter(|line| line["name"] == case);
        let values = lines.map(|line| number(line, field)).collect::<Outcome<Vec<f64>>>()?;
        if values.is_empty() {
            Err(format!("the simulator has no case `{case}`"))
        } else {
            Ok(values)
        }
    }

    fn sum(&self, case: &str, field: &str) -> Outcome<f64> {
        Ok(self.all(case, field)?.iter().sum())
    }
}
