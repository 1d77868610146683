//! How fast a model is here: tokens per second of a prompt and of what follows, as one JSON object. `bits` are those of
//! all logits: the same wherever the same model is computed.
//!
//! `llm-speed MODEL.gguf [--threads N] [--prompt N] [--follow N] [--rounds N] [--kernel NAME]`

#![allow(clippy::print_stdout, reason = "what it prints is read by another program")]

use std::ops::Range;
use std::time::Instant;

use shoal_engine::llm::{Input, Kernel, Options, Output, Row, Stage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which model?")?;
    let (mut threads, mut prompt, mut follow, mut rounds) = (1, 512, 64, 1);
    let mut kernel = None;
    while let Some(word) = args.next() {
        let value = args.next().ok_or("a value is missing")?;
        match word.as_str() {
            "--threads" => threads = value.parse()?,
            "--prompt" => prompt = value.parse()?,
            "--follow" => follow = value.parse()?,
            "--rounds" => rounds = value.parse()?,
            "--kernel" => kernel = Kernel::all().into_iter().find(|it| it.name() == value),
            other => return Err(format!("{other} is not known").into()),
        }
    }
    let file = std::fs::read(&path)?;
    let model = shoal_gguf::Model::read(file.clone(), file.len() as u64)?;
    let options = Options { threads, context: 4096, sequences: 2, kernel };
    let start = Instant::now();
    let mut read = |at: Range<u64>| Ok(file[at.start as usize..at.end as usize].to_vec());
    let mut stage = Stage::load(&model, model.whole(), &options, &mut read)?;
    let loaded = start.elapsed().as_secs_f64();
    let vocab = model.config().vocab;
    let tokens: Vec<u32> = (0..prompt).map(|at| (at * 7919 + 13) % vocab).collect();
    let (mut best_prompt, mut best_follow) = (f64::MAX, f64::MAX);
    let mut bits = 0;
    for round in 0..rounds {
        let row = |at, last| Row { sequence: round, position: at, wants_logits: last };
        let rows: Vec<Row> = (0..prompt).map(|at| row(at, at + 1 == prompt)).collect();
        let start = Instant::now();
        let mut next = 0;
        let mut outputs = Vec::new();
        for (rows, tokens) in rows.chunks(512).zip(tokens.chunks(512)) {
            let output = stage.run(rows, Input::Tokens(tokens))?;
            next = likeliest(&output);
            outputs.push(output);
        }
        best_prompt = best_prompt.min(seconds(start));
        let start = Instant::now();
        for at in 0..follow {
            let output = stage.run(&[row(prompt + at, true)], Input::Tokens(&[next]))?;
            next = likeliest(&output);
            outputs.push(output);
        }
        best_follow = best_follow.min(seconds(start));
        stage.drop_sequence(round);
        bits = outputs.iter().fold(0, mixed);
    }
    let (prefill, decode) = (f64::from(prompt) / best_prompt, f64::from(follow) / best_follow);
    let kernel = stage.kernel().name();
    println!(
        "{{\"kernel\":\"{kernel}\",\"load\":{loaded:.3},\"prefill\":{prefill:.2},\"decode\":{decode:.2},\"bits\":\"{bits:016x}\"}}"
    );
    Ok(())
}

fn likeliest(output: &Output) -> u32 {
    let Output::Logits(logits) = output else { return 0 };
    let most = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or(0, |(token, _)| token as u32)
}

/// Clocks of browsers stand still for a while.
fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64().max(1e-6)
}

/// FNV-1a, a number at a time.
fn mixed(before: u64, output: &Output) -> u64 {
    let Output::Logits(logits) = output else { return before };
    let mix =
        |mixed: u64, it: &f32| (mixed ^ u64::from(it.to_bits())).wrapping_mul(0x0100_0000_01b3);
    logits.iter().fold(before, mix)
}
