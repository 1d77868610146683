//! Texts as numbers against numpy (`conformance/llm/embeddings.py`), alone and beside conversations.

use std::path::Path;

use shoal_engine::llm::{Conversations, Heard, Options, Room, Whole};
use shoal_text::{Ask, Asked, Bounds, Pooling, Said, Sampling, Token, Words};

use crate::material::{File, case, cases, numbers, options, outside, tokens};

/// Apart from numpy, where all numbers have 64 bits and no activation is rounded to 8. A row's length is 1.
const TOLERANCE: f64 = 0.02;

fn talk(file: &File, seats: usize, step: usize) -> Conversations<Whole> {
    let options = Options { sequences: seats, ..options() };
    let stage = file.stages(None, &options).remove(0);
    let bounds = Bounds { words: file.model.config().vocab, context: options.context, step };
    Conversations::new(Whole::new(stage), bounds, Room { seats, tokens: 64, guesses: true }, None)
}

fn embedding(prompt: &[Token], pooling: Pooling) -> Asked {
    Asked { ask: Ask::embedding(prompt.into(), pooling), said: Vec::new() }
}

/// What each is told until nobody waits: its numbers, and its tokens.
fn told(talk: &mut Conversations<Whole>, number: u64) -> (Vec<f32>, Vec<Token>) {
    let mut words = Words::default();
    while !talk.is_idle() {
        for (who, heard) in talk.go(&|| 0) {
            match heard {
                Heard::Part(bytes) | Heard::Done(bytes) if who == number => words.push(&bytes),
                Heard::Part(_) | Heard::Done(_) => {}
                Heard::Failed(why) | Heard::Broke(why) => panic!("{why}"),
            }
        }
    }
    let (mut row, mut said) = (Vec::new(), Vec::new());
    while let Some(word) = words.take().expect("words") {
        match word {
            Said::Embedding(some) => row.extend_from_slice(&some),
            Said::Token(chosen) => said.push(chosen.token),
            Said::Done(_) => {}
        }
    }
    (row, said)
}

fn compare(path: &Path, name: &str) {
    let file = File::open(path);
    for text in case("embeddings")[name].as_array().expect("texts") {
        let prompt = tokens(&text["tokens"]);
        for (pooling, wanted) in [(Pooling::Mean, "mean"), (Pooling::Last, "last")] {
            let of = |step: usize| {
                let mut talk = talk(&file, 1, step);
                talk.ask(1, embedding(&prompt, pooling));
                told(&mut talk, 1).0
            };
            let found = of(64);
            assert_eq!(found, of(5), "{name}: the same bits, however it is read");
            let wanted = numbers(&text[wanted]);
            assert_eq!(found.len(), wanted.len());
            let off = found.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).abs());
            let off = off.fold(0.0, f64::max);
            assert!(off < TOLERANCE, "{name} {pooling:?}: {off}");
            let length: f64 = found.iter().map(|number| f64::from(*number).powi(2)).sum();
            assert!((length - 1.0).abs() < 1e-5);
        }
    }
}

#[test]
fn texts_become_the_numbers_that_numpy_says() {
    for name in ["llama", "qwen2", "qwen3", "gemma3"] {
        compare(&cases().join(format!("{name}.gguf")), name);
    }
}

#[test]
fn a_published_model_gives_the_numbers_that_numpy_says() {
    let Some(folder) = outside() else { return };
    compare(&folder.join("stories15m/stories15M-q8_0.gguf"), "stories15m");
}

#[test]
fn conversations_and_texts_change_nothing_of_each_other() {
    let file = File::open(&cases().join("llama.gguf"));
    let prompt: Vec<Token> = (0..40).collect();
    let ask = || {
        let sampling = Sampling { temperature: 0.7, seed: 5, ..Sampling::default() };
        let (prompt, ends) = (prompt.clone(), Vec::new());
        let ask = Ask { prompt, most: 30, ends, sampling, form: None, embed: None, guess: true };
        Asked { ask, said: Vec::new() }
    };
    let alone = |asked| {
        let mut talk = talk(&file, 1, 16);
        talk.ask(1, asked);
        told(&mut talk, 1)
    };
    let (row, words) = (alone(embedding(&prompt, Pooling::Mean)).0, alone(ask()).1);
    assert_eq!(words.len(), 30);
    // One seat: each waits for the one before. Two: they share goes.
    for seats in [1, 2] {
        for wanted in 1..=4 {
            let mut talk = talk(&file, seats, 16);
            talk.ask(1, ask());
            talk.ask(2, embedding(&prompt, Pooling::Mean));
            talk.ask(3, ask());
            talk.ask(4, embedding(&prompt, Pooling::Mean));
            let found = told(&mut talk, wanted);
            match wanted % 2 {
                0 => assert_eq!((found.0, found.1), (row.clone(), Vec::new())),
                _ => assert_eq!((found.0, found.1), (Vec::new(), words.clone())),
            }
        }
    }
    // Who leaves gives its seat away.
    let mut talk = talk(&file, 1, 4);
    talk.ask(1, embedding(&prompt, Pooling::Mean));
    assert!(talk.go(&|| 0).is_empty(), "it is not read to its end");
    talk.leave(1);
    talk.ask(2, ask());
    assert_eq!(told(&mut talk, 2).1, words);
}
