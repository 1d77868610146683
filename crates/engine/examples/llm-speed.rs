//! How fast a model is here: tokens per second of a prompt and of what follows, as one JSON object.
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
    for round in 0..rounds {
        let row = |at, last| Row { sequence: round, position: at, wants_logits: last };
        let rows: Vec<Row> = (0..prompt).map(|at| row(at, at + 1 == prompt)).collect();
        let start = Instant::now();
        let mut next = 0;
        for (rows, tokens) in rows.chunks(512).zip(tokens.chunks(512)) {
            next = likeliest(&stage.run(rows, Input::Tokens(tokens))?);
        }
        best_prompt = best_prompt.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for at in 0..follow {
            next = likeliest(&stage.run(&[row(prompt + at, true)], Input::Tokens(&[next]))?);
        }
        best_follow = best_follow.min(start.elapsed().as_secs_f64());
        stage.drop_sequence(round);
    }
    let (prefill, decode) = (f64::from(prompt) / best_prompt, f64::from(follow) / best_follow);
    let kernel = stage.kernel().name();
    println!(
        "{{\"kernel\":\"{kernel}\",\"load\":{loaded:.3},\"prefill\":{prefill:.2},\"decode\":{decode:.2}}}"
    );
    Ok(())
}

fn likeliest(output: &Output) -> u32 {
    let Output::Logits(logits) = output else { return 0 };
    let most = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or(0, |(token, _)| token as u32)
}
