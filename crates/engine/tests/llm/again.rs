//! Any word of an answer said again, behind those before it: the kind finds where the words end, and that another engine
//! says the same, with the same chances. That is how answers of strangers are checked.

use shoal_engine::llm::{Conversations, Heard, Options, Room, Whole};
use shoal_kinds::llm::{By, LlmWork, On, Summary};
use shoal_kinds::{Kind, Wire};
use shoal_protocol::{BlobRef, Hash};
use shoal_text::{Ask, Asked, Bounds, Pooling, Sampling, Token};

use crate::material::{File, cases, options};

fn work() -> Kind {
    let model = BlobRef { hash: Hash([0; 32]), size: 1 };
    let (about, by, wire, on) = (Summary::default(), By::Layers, Wire::F32, On::Processor);
    LlmWork { model, about, context: 160, conversations: 1, split: false, wire, by, on }.into()
}

/// All that a new engine says to these bytes, perhaps with guesses.
fn says(file: &File, body: &[u8], guesses: bool) -> Vec<u8> {
    let options = Options { context: 160, sequences: 1, ..options() };
    let stage = file.stages(None, &options).remove(0);
    let bounds = Bounds { words: file.model.config().vocab, context: 160, step: 16 };
    let room = Room { seats: 1, tokens: 16, guesses };
    let mut talk = Conversations::new(Whole::new(stage), bounds, room, None);
    talk.ask(1, Asked::unpack(body).expect("an ask"));
    let mut said = Vec::new();
    while !talk.is_idle() {
        for (_, heard) in talk.go(&|| 7) {
            match heard {
                Heard::Part(bytes) | Heard::Done(bytes) => said.extend(bytes),
                Heard::Failed(why) | Heard::Broke(why) => panic!("{why}"),
            }
        }
    }
    said
}

#[test]
fn every_word_is_said_again_as_it_was() {
    let work = work();
    for name in ["llama", "gemma3"] {
        let file = File::open(&cases().join(format!("{name}.gguf")));
        for temperature in [0.0, 0.9] {
            let alternatives = Some(2);
            let sampling = Sampling { temperature, seed: 5, alternatives, ..Sampling::default() };
            let prompt: Vec<Token> = (0..20).map(|at| at % 16 * 7 % 40).collect();
            let ask = Ask {
                prompt,
                most: 12,
                ends: Vec::new(),
                sampling,
                form: None,
                embed: None,
                guess: true,
            };
            let request = ask.pack();
            let answer = says(&file, &request, true);
            let ends = work.steps_again(&answer, true).expect("words");
            assert!(ends.len() > 2 && ends.last() == Some(&answer.len()), "{name}: {ends:?}");
            for (step, end) in ends.iter().enumerate() {
                let from = if step == 0 { 0 } else { ends[step - 1] };
                let (body, behind) = work.resumed(&request, &answer[..from]).expect("a request");
                assert_eq!(behind, from as u64);
                let again = says(&file, &body, false);
                let word = &answer[from..*end];
                assert_eq!(work.same_step(word, &again), Some(true), "{name}, word {step}");
                assert_eq!(work.same_step(word, &again[..3]), None);
                // Another token is another word, and so is an end.
                let mut other = word.to_vec();
                other[5] ^= 1;
                assert_eq!(work.same_step(&other, &again), Some(false), "{name}, word {step}");
            }
        }
    }
}

#[test]
fn a_text_as_numbers_is_compared_by_the_first_of_them() {
    let work = work();
    let file = File::open(&cases().join("llama.gguf"));
    let request = Ask::embedding([1, 2, 3, 4].into(), Pooling::Mean).pack();
    let answer = says(&file, &request, true);
    let ends = work.steps_again(&answer, false).expect("words");
    assert_eq!(ends.len(), 1, "nobody goes on behind numbers");
    let first = &answer[..ends[0]];
    assert_eq!(work.same_step(first, &says(&file, &request, true)), Some(true));
    let other = Ask::embedding([1, 2, 3, 5].into(), Pooling::Mean).pack();
    assert_eq!(work.same_step(first, &says(&file, &other, true)), Some(false));
}
