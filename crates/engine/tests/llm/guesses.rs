//! Guessed tokens, with tiny models: the same words as without guesses, in fewer steps.

use shoal_engine::llm::{Computes, Conversations, Heard, Options, Room, Step, Whole};
use shoal_text::{Answer, Ask, Asked, Bounds, Done, Said, Sampling, Token, Words};

use crate::material::{File, cases, options, rows, run};

const CONTEXT: u32 = 160;

fn asked(temperature: f32, frequency: f32) -> Asked {
    let sampling = Sampling { temperature, frequency, seed: 3, ..Sampling::default() };
    let prompt: Vec<Token> = (0..48).map(|at| at % 16 * 7 % 40).collect();
    let ask =
        Ask { prompt, most: 100, ends: Vec::new(), sampling, form: None, embed: None, guess: true };
    Asked { ask, said: Vec::new() }
}

fn bounds(file: &File) -> Bounds {
    Bounds { words: file.model.config().vocab, context: CONTEXT, step: 64 }
}

/// What is said without guesses, a token at a time.
fn plain(file: &File, asked: Asked) -> Vec<Token> {
    let options = Options { context: CONTEXT, ..options() };
    let mut stages = file.stages(None, &options);
    let mut answer = Answer::new(asked, bounds(file), None, 0).expect("an answer");
    let mut all = Vec::new();
    while let Some(next) = answer.next() {
        let mut wanted = rows(1, next.position as usize, next.tokens.len(), false);
        if let Some(last) = wanted.last_mut() {
            last.wants_logits = true;
        }
        let tokens = next.tokens.to_vec();
        let logits = run(&mut stages, &wanted, &tokens);
        for said in answer.computed(Some(&logits), 0).expect("said") {
            if let Said::Token(chosen) = said {
                all.push(chosen.token);
            }
        }
    }
    all
}

#[test]
fn guesses_change_no_word() {
    let mut right = 0;
    for name in ["llama", "qwen3", "gemma3"] {
        let file = File::open(&cases().join(format!("{name}.gguf")));
        for (temperature, frequency) in [(0.0, 0.0), (0.0, 0.4), (0.3, 0.0), (0.8, 0.0)] {
            let options = Options { context: CONTEXT, sequences: 1, ..options() };
            let stage = file.stages(None, &options).remove(0);
            let room = Room { seats: 1, tokens: 64, guesses: true };
            let mut talk = Conversations::new(Whole::new(stage), bounds(&file), room, None);
            talk.ask(1, asked(temperature, frequency));
            let (mut words, mut found) = (Words::default(), Vec::new());
            while !talk.is_idle() {
                for (_, heard) in talk.go(&|| 0) {
                    match heard {
                        Heard::Part(bytes) | Heard::Done(bytes) => words.push(&bytes),
                        Heard::Failed(why) | Heard::Broke(why) => panic!("{why}"),
                    }
                }
            }
            while let Some(said) = words.take().expect("words") {
                match said {
                    Said::Token(chosen) => found.push(chosen.token),
                    Said::Done(Done { right: more, .. }) => right += more,
                    Said::Embedding(_) => panic!("numbers"),
                }
            }
            assert_eq!(found, plain(&file, asked(temperature, frequency)), "{name} {temperature}");
        }
    }
    assert!(right > 100, "{right} guesses were right");
}

#[test]
fn the_numbers_behind_several_tokens_are_those_behind_each() {
    let file = File::open(&cases().join("llama.gguf"));
    let whole = || Whole::new(file.stages(None, &options()).remove(0));
    let step = |position: u32, tokens: &[u32], wants| {
        let tokens = tokens.to_vec();
        Step { sequence: 1, position, tokens, wants }
    };
    let mut one = whole();
    let each = [3, 7, 9].iter().enumerate();
    let each = each.map(|(at, token)| one.run(&[step(at as u32, &[*token], 1)]).expect("numbers"));
    let each: Vec<f32> = each.flat_map(|mut all| all.remove(0).expect("some")).collect();
    let mut all = whole().run(&[step(0, &[3, 7, 9], 3)]).expect("numbers");
    assert_eq!(all.remove(0).expect("some"), each);
}
