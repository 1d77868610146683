//! Shoal against its peers, in one run on one machine: only the ratio means something.

mod allreduce;
mod churn;
mod crowd;
mod farm;
mod farm_exec;
mod join;
mod link;
mod llama_rpc;
mod llm_solo;
mod llm_split;
mod llm_tensor;
mod map;
mod nodes;
mod offload;
mod onnx;
mod onnx_batch;
mod onnx_split;
mod peers;
mod pool;
mod relay;
mod report;
mod service;
mod sim;
mod sim_grid;
mod swarm;
mod upgrade;
mod verify;

use std::process::Command;

use crate::shell::{self, Outcome};
use crate::{programs, setup, web};
use report::Report;

type Bench = fn(&Plan) -> Outcome<Report>;

/// All of them, as `bench NAME` and the help name them.
const BENCHES: &[(&str, Bench)] = &[
    ("allreduce", allreduce::run),
    ("churn", churn::run),
    ("farm", farm::run),
    ("farm-exec", farm_exec::run),
    ("join", join::run),
    ("link", link::run),
    ("llm-recovery", llm_split::recovery),
    ("llm-solo", llm_solo::run_bench),
    ("llm-split", llm_split::speed),
    ("llm-tensor", llm_tensor::run),
    ("map", map::run),
    ("nodes", nodes::run),
    ("offload", offload::run),
    ("onnx", onnx::run),
    ("onnx-batch", onnx_batch::run),
    ("onnx-split", onnx_split::run),
    ("relay", relay::run),
    ("service", service::run),
    ("sim", sim::run),
    ("sim-grid", sim_grid::run),
    ("swarm", swarm::run),
    ("upgrade", upgrade::run),
    ("verify", verify::run),
];

pub(crate) fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|(name, _)| *name).collect()
}

/// What every benchmark is told.
struct Plan {
    rounds: usize,
    /// Only the result on stdout, nothing on the way.
    quiet: bool,
    /// Nothing is built: what is there is measured.
    is_built: bool,
}

impl Plan {
    fn say(&self, text: &str) {
        if !self.quiet {
            println!("{text}");
        }
    }
}

pub(crate) fn run(args: &[String]) -> Outcome {
    let (name, plan) = parse(args)?;
    let bench = BENCHES.iter().find(|(known, _)| *known == name).map(|(_, bench)| bench);
    let bench = bench
        .ok_or_else(|| format!("there is no benchmark `{name}`, only {}", names().join(", ")))?;
    bench(&plan)?.print(plan.quiet);
    Ok(())
}

fn parse(args: &[String]) -> Outcome<(&str, Plan)> {
    let mut plan = Plan { rounds: 3, quiet: false, is_built: false };
    let mut name = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => plan.quiet = true,
            "--no-build" => plan.is_built = true,
            "--rounds" => {
                let count = args.next().and_then(|count| count.parse().ok()).filter(|n| *n > 0);
                plan.rounds = count.ok_or("--rounds takes a number from 1")?;
            }
            other if name.is_none() && !other.starts_with('-') => name = Some(other),
            other => {
                let known = "NAME, --json, --no-build and --rounds N";
                return Err(format!("bench takes {known}, not `{other}`"));
            }
        }
    }
    name.map(|name| (name, plan)).ok_or_else(|| format!("which benchmark? {}", names().join(", ")))
}

/// The release binary with the pages inside.
fn build(plan: &Plan) -> Outcome {
    if plan.is_built {
        return Ok(());
    }
    plan.say("building");
    setup::for_testing()?;
    web::build(shell::For::Users)?;
    programs::build()?;
    shell::build_shoal(shell::For::Users)
}

/// Node in `web/`, where the helpers' packages are, told where the binary is.
fn node() -> Command {
    let mut node = shell::command("node");
    node.current_dir(shell::root().join("web")).env("SHOAL_BIN", shell::shoal());
    node
}

/// Runs a helper and reads the JSON object it prints, alone or in its last line.
fn figures(command: &mut Command) -> Outcome<serde_json::Value> {
    let text = shell::output(command)?;
    if let Ok(whole) = serde_json::from_str(&text) {
        return Ok(whole);
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    serde_json::from_str(last)
        .map_err(|error| format!("`{}` printed `{last}`: {error}", shell::shown(command)))
}

/// What else the machine is busy with: a figure means little without it.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let last = text.split_whitespace().next().unwrap_or("unknown").to_owned();
    format!("{cores} cores, load of the last minute {last} when it ended")
}

/// A number in a helper's figures.
fn number(figures: &serde_json::Value, name: &str) -> Outcome<f64> {
    figures[name].as_f64().ok_or_else(|| format!("no number `{name}` in {figures}"))
}
