//! How fast a model is on this machine's GPU: tokens per second of a prompt and of what follows, and the kernels that are
//! started for a token, as one JSON object.
//!
//! `llm-gpu-speed MODEL.gguf [--prompt N] [--follow N]`

#![allow(clippy::print_stdout, reason = "what it prints is read by another program")]

use std::time::Instant;

use shoal_engine::llm::gpu::{Card, GpuLoading, GpuWhole, waited};
use shoal_engine::llm::{Computes, Options, Step};

/// Tokens of a prompt in one go, as in a node.
const STEP: usize = 128;
/// The only conversation.
const SEQUENCE: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which model?")?;
    let (mut prompt, mut follow) = (512, 64);
    while let Some(word) = args.next() {
        let value = args.next().ok_or("a value is missing")?;
        match word.as_str() {
            "--prompt" => prompt = value.parse()?,
            "--follow" => follow = value.parse()?,
            other => return Err(format!("{other} is not known").into()),
        }
    }
    let file = std::fs::read(&path)?;
    let model = shoal_gguf::Model::read(file.clone(), file.len() as u64)?;
    let card = waited(Card::open())?;
    let start = Instant::now();
    let options = Options { threads: 1, context: 1024, sequences: 1, kernel: None };
    let mut loading = GpuLoading::new(&card, &model, model.whole(), &options)?;
    while let Some(range) = loading.wants() {
        loading.give(&file[range.start as usize..range.end as usize])?;
    }
    let mut whole = GpuWhole::new(loading.finish()?);
    waited(whole.tried())?;
    let loaded = start.elapsed().as_secs_f64();
    let vocab = model.config().vocab;
    let tokens: Vec<u32> = (0..prompt).map(|at| (at * 7919 + 13) % vocab).collect();
    let start = Instant::now();
    let (mut position, mut next) = (0, 0);
    for tokens in tokens.chunks(STEP) {
        next = after(&mut whole, position, tokens)?;
        position += tokens.len() as u32;
    }
    let prefill = f64::from(prompt) / start.elapsed().as_secs_f64();
    let start = Instant::now();
    for at in 0..follow {
        next = after(&mut whole, position + at, &[next])?;
    }
    let decode = f64::from(follow) / start.elapsed().as_secs_f64();
    let (name, dispatches) = (card.caps().name, whole.dispatches());
    println!(
        "{{\"gpu\":{name:?},\"load\":{loaded:.3},\"prefill\":{prefill:.2},\"decode\":{decode:.2},\"dispatches\":{dispatches}}}"
    );
    Ok(())
}

/// The likeliest token behind these.
fn after(whole: &mut GpuWhole, position: u32, tokens: &[u32]) -> Result<u32, String> {
    let step = Step { sequence: SEQUENCE, position, tokens: tokens.to_vec(), wants: 1 };
    let numbers = whole.run(&[step])?.into_iter().next().flatten().unwrap_or_default();
    let most = numbers.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    Ok(most.map_or(0, |(token, _)| token as u32))
}
