//! Conversations that begin as earlier ones did, with tiny models: the same words as without the earlier ones.

use std::collections::BTreeMap;

use shoal_engine::llm::{Conversations, Heard, Options, Room, Whole};
use shoal_text::{Ask, Asked, Bounds, Done, Said, Sampling, Token, Words};

use crate::material::{File, cases, options};

const CONTEXT: u32 = 96;

fn open(name: &str, seats: usize) -> Conversations<Whole> {
    let file = File::open(&cases().join(format!("{name}.gguf")));
    // The engine refuses more texts than there are seats, whatever is left of earlier ones.
    let options = Options { sequences: seats, context: CONTEXT, ..options() };
    let stage = file.stages(None, &options).remove(0);
    let bounds = Bounds { words: file.model.config().vocab, context: CONTEXT, step: 7 };
    Conversations::new(Whole::new(stage), bounds, Room { seats, tokens: 20, guesses: true }, None)
}

fn asked(prompt: &[Token], most: u32) -> Asked {
    let sampling = Sampling { temperature: 0.8, seed: 7, ..Sampling::default() };
    let ask = Ask {
        prompt: prompt.into(),
        most,
        ends: Vec::new(),
        sampling,
        form: None,
        embed: None,
        guess: true,
    };
    Asked { ask, said: Vec::new() }
}

/// What each says until all ended, and how many tokens of its prompt were found.
fn all(conversations: &mut Conversations<Whole>) -> BTreeMap<u64, (Vec<Token>, u32)> {
    let mut found = BTreeMap::<u64, (Vec<Token>, u32)>::new();
    while !conversations.is_idle() {
        for (number, heard) in conversations.go(&|| 0) {
            let bytes = match heard {
                Heard::Part(bytes) | Heard::Done(bytes) => bytes,
                Heard::Failed(why) | Heard::Broke(why) => panic!("{number}: {why}"),
            };
            let mut words = Words::default();
            words.push(&bytes);
            while let Some(said) = words.take().expect("words") {
                let own = found.entry(number).or_default();
                match said {
                    Said::Token(chosen) => own.0.push(chosen.token),
                    Said::Done(Done { found, .. }) => own.1 = found,
                    Said::Embedding(_) => panic!("numbers"),
                }
            }
        }
    }
    found
}

/// What one says, beside nothing and behind nothing.
fn alone(name: &str, prompt: &[Token], most: u32) -> Vec<Token> {
    let mut fresh = open(name, 1);
    fresh.ask(1, asked(prompt, most));
    let (said, found) = all(&mut fresh).remove(&1).expect("an answer");
    assert_eq!(found, 0);
    said
}

fn says(
    conversations: &mut Conversations<Whole>,
    prompt: &[Token],
    most: u32,
) -> (Vec<Token>, u32) {
    conversations.ask(1, asked(prompt, most));
    all(conversations).remove(&1).expect("an answer")
}

#[test]
fn a_text_that_begins_as_an_earlier_one_says_what_it_says_without_it() {
    for name in ["llama", "qwen3", "gemma3"] {
        for seats in [1, 2, 3] {
            let mut talk = open(name, seats);
            let first: Vec<Token> = (0..20).map(|at| at * 7 % 40).collect();
            let (said, found) = says(&mut talk, &first, 10);
            assert_eq!((&said, found), (&alone(name, &first, 10), 0), "{name}");
            // It goes on: all of it is there, but what was said last.
            let more = [&first[..], &said, &[3, 4, 5]].concat();
            let (said, found) = says(&mut talk, &more, 10);
            assert_eq!((&said, found), (&alone(name, &more, 10), 29), "{name} goes on");
            // Another end, and the same again.
            let other = [&first[..18], &[9, 9, 9]].concat();
            for (ask, there) in [(&other, 18), (&other, 20), (&first, 18)] {
                let (said, found) = says(&mut talk, ask, 5);
                assert_eq!(said, alone(name, ask, 5), "{name} with {seats} seats");
                let known = if seats == 3 && ask == &first { 19 } else { there };
                assert_eq!(found, known, "{name} with {seats} seats");
            }
            // Nothing in common, until all seats have other texts; then nothing is left of the first.
            for at in 0..seats as u32 {
                let strange: Vec<Token> = (0..20).map(|n| (n * 11 + at * 5 + 1) % 40).collect();
                assert_eq!(says(&mut talk, &strange, 5), (alone(name, &strange, 5), 0));
            }
            assert_eq!(says(&mut talk, &first, 5), (alone(name, &first, 5), 0));
        }
    }
}

#[test]
fn texts_begin_behind_those_that_go_on_and_those_that_nobody_wanted_any_more() {
    let name = "gemma3";
    let mut talk = open(name, 2);
    let first: Vec<Token> = (0..24).map(|at| at * 7 % 40).collect();
    talk.ask(1, asked(&first, 30));
    while talk.go(&|| 0).is_empty() {}
    // Beside it.
    talk.ask(2, asked(&first, 12));
    while talk.go(&|| 0).iter().all(|(number, _)| *number != 2) {}
    // The second is left in the middle; what is left of it serves the third.
    talk.leave(2);
    let other = [&first[..], &[1, 2]].concat();
    talk.ask(3, asked(&other, 6));
    let found = all(&mut talk);
    assert_eq!(found[&3], (alone(name, &other, 6), 24));
    assert!(alone(name, &first, 30).ends_with(&found[&1].0));
}
