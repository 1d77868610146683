//! Texts that go round through devices with some layers each: the same tokens as from one device with all layers.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use shoal_engine::llm::{Given, READ_STEP, Rounds};
use shoal_kinds::Wire;
use shoal_kinds::crew::{Out, Way};
use shoal_protocol::Failure;
use shoal_text::{Ask, Asked, Bounds, Done, Pooling, Said, Sampling, Token, Why, Words};

use crate::material::{File, case, cases, options, rows, run, tokens};

type Passed = (u64, Way, Vec<u8>);

/// Devices, and what is on its way to each.
struct Ring {
    devices: Vec<Rounds>,
    ways: Vec<VecDeque<Passed>>,
    answers: BTreeMap<u64, Vec<u8>>,
    failed: Vec<(u64, Failure)>,
    /// Words past the others are held back until then.
    holds_aside: bool,
    /// What a device's turn takes, whatever it computes, and what time it is.
    step: u64,
    now: Cell<u64>,
    /// Rounds, and tokens that were sent with them.
    rounds: usize,
    sent: usize,
    /// Texts that were read from the beginning after all.
    begun_again: usize,
}

fn file() -> File {
    File::open(&cases().join("llama.gguf"))
}

/// Layers for three devices.
fn three() -> File {
    File::open(&cases().join("gemma3.gguf"))
}

/// Devices that have the layers between these, and an end.
fn ring(file: &File, cuts: &[u32]) -> Ring {
    ring_by(file, cuts, Wire::F32)
}

/// The same where numbers travel in this form.
fn ring_by(file: &File, cuts: &[u32], wire: Wire) -> Ring {
    let (words, context) = (file.model.config().vocab, options().context);
    let bounds = Bounds { words, context, step: READ_STEP };
    let ends = [&[0], cuts, &[file.model.config().layers]].concat();
    let device = |ends: &[u32]| {
        let stage = file.stage(ends[0]..ends[1], &options());
        Rounds::new(stage, bounds, None, wire)
    };
    let devices: Vec<Rounds> = ends.windows(2).map(device).collect();
    let ways = devices.iter().map(|_| VecDeque::new()).collect();
    let (answers, failed, now) = (BTreeMap::new(), Vec::new(), Cell::new(0));
    let (holds_aside, step, rounds, sent, begun_again) = (false, 0, 0, 0, 0);
    Ring { devices, ways, answers, failed, holds_aside, step, now, rounds, sent, begun_again }
}

pub(crate) fn ask(prompt: &[Token], most: u32) -> Ask {
    let sampling = Sampling { temperature: 0.8, seed: 7, ..Sampling::default() };
    Ask {
        prompt: prompt.into(),
        most,
        ends: [].into(),
        sampling,
        form: None,
        embed: None,
        guess: true,
    }
}

impl Ring {
    fn ask(&mut self, text: u64, ask: &Ask, said: &[u8]) {
        self.ways[0].push_back((text, Way::Asked, [&ask.pack(), said].concat()));
    }

    /// One device takes all that came to it. Says whether anything did.
    fn turn(&mut self, at: usize) -> bool {
        // Of each text at most one, as members give them.
        let mut texts = BTreeSet::new();
        let holds = |(text, way, _): &Passed| {
            (self.holds_aside && *way == Way::Aside) || !texts.insert(*text)
        };
        let (held, now): (Vec<_>, Vec<_>) = self.ways[at].drain(..).partition(holds);
        self.ways[at].extend(held);
        let given = now.iter().map(|(text, way, bytes)| Given { text: *text, way: *way, bytes });
        let given: Vec<_> = given.collect();
        self.now.set(self.now.get() + self.step);
        let made = self.devices[at].turn(&given, &|| self.now.get()).made;
        let (last, count) = (self.devices.len() - 1, now.len());
        for ((text, ..), outs) in now.into_iter().zip(made) {
            match outs {
                Err(failure) => self.failed.push((text, failure)),
                Ok(outs) => outs.into_iter().for_each(|out| match out {
                    Out::Again => self.ways[at].push_back((text, Way::Again, Vec::new())),
                    Out::On(bytes) => self.ways[at + 1].push_back((text, Way::On, bytes)),
                    Out::Round(bytes) => {
                        self.rounds += usize::from(bytes.len() > 4);
                        self.begun_again += usize::from(bytes.len() == 4);
                        self.sent += bytes.len() / 4 - 1;
                        self.ways[0].push_back((text, Way::Round, bytes));
                    }
                    Out::Aside(bytes) => self.ways[last].push_back((text, Way::Aside, bytes)),
                    Out::Among(_) | Out::Choose(_) => panic!("these devices stand in a chain"),
                    Out::Part(bytes) | Out::Last(bytes) => {
                        self.answers.entry(text).or_default().extend(bytes);
                    }
                }),
            }
        }
        count > 0
    }

    fn run(&mut self) {
        while (0..self.devices.len()).filter(|at| self.turn(*at)).count() > 0 {}
    }

    fn tokens(&self, text: u64) -> (Vec<Token>, Option<Done>) {
        said(self.answers.get(&text).map_or(&[], Vec::as_slice))
    }
}

/// The tokens of an answer, or of its beginning.
pub(crate) fn said(answer: &[u8]) -> (Vec<Token>, Option<Done>) {
    let (mut words, mut tokens) = (Words::default(), Vec::new());
    words.push(answer);
    while let Some(word) = words.take().expect("words") {
        match word {
            Said::Token(chosen) => tokens.push(chosen.token),
            Said::Done(done) => return (tokens, Some(done)),
            Said::Embedding(_) => panic!("numbers"),
        }
    }
    (tokens, None)
}

/// What one device with all layers says, step by step.
pub(crate) fn alone(file: &File, ask: &Ask) -> Vec<Token> {
    let mut stages = file.stages(None, &options());
    let asked = Asked { ask: ask.clone(), said: Vec::new() };
    let bounds = Bounds { words: file.model.config().vocab, context: 1024, step: 9 };
    let mut answer = shoal_text::Answer::new(asked, bounds, None, 0).expect("an answer");
    let mut all = Vec::new();
    while let Some(next) = answer.next() {
        let mut wanted = rows(1, next.position as usize, next.tokens.len(), false);
        if let Some(last) = wanted.last_mut() {
            last.wants_logits = next.wants;
        }
        let (tokens, wants) = (next.tokens.to_vec(), next.wants);
        let logits = run(&mut stages, &wanted, &tokens);
        for said in answer.computed(wants.then_some(&logits), 0).expect("said") {
            if let Said::Token(chosen) = said {
                all.push(chosen.token);
            }
        }
    }
    all
}

fn prompt(length: usize) -> Vec<Token> {
    let tokens = tokens(&case("llama")["tokens"]);
    tokens.iter().copied().cycle().take(length).collect()
}

#[test]
fn devices_with_some_layers_each_say_what_one_with_all_says() {
    let file = file();
    let layers = file.model.config().layers;
    let cuts: Vec<Vec<u32>> = vec![vec![], vec![1], (1..layers).collect()];
    // Longer than what is read in one go, and shorter.
    for length in [3, READ_STEP, 2 * READ_STEP + 5] {
        let ask = ask(&prompt(length), 20);
        let expected = alone(&file, &ask);
        for cuts in &cuts {
            for holds_aside in [false, true] {
                let mut ring = ring(&file, cuts);
                ring.holds_aside = holds_aside;
                ring.ask(1, &ask, &[]);
                ring.run();
                ring.holds_aside = false;
                ring.run();
                let (tokens, done) = ring.tokens(1);
                assert_eq!(tokens, expected, "{length} {cuts:?} {holds_aside}");
                assert_eq!(done.expect("an end").why, Why::Length);
                assert_eq!(ring.failed, []);
            }
        }
    }
}

#[test]
fn texts_share_the_devices_and_do_not_see_each_other() {
    let file = file();
    let mut ring = ring(&file, &[1]);
    let asks: Vec<Ask> = (1..=4).map(|text| ask(&prompt(text * 30), 12)).collect();
    for (text, ask) in (1..).zip(&asks) {
        ring.ask(text, ask, &[]);
    }
    ring.run();
    for (text, ask) in (1..).zip(&asks) {
        assert_eq!(ring.tokens(text).0, alone(&file, ask), "{text}");
        (0..2).for_each(|at| ring.devices[at].forget(text));
    }
    // Their places are free again.
    ring.ask(9, &asks[0], &[]);
    ring.run();
    assert_eq!((ring.tokens(9).0.len(), ring.failed.len()), (12, 0));
}

#[test]
fn a_text_goes_on_on_other_devices_behind_what_was_said() {
    let file = file();
    let ask = ask(&prompt(70), 16);
    let expected = alone(&file, &ask);
    let mut first = ring(&file, &[1]);
    first.ask(1, &ask, &[]);
    while first.tokens(1).0.len() < 7 {
        for at in 0..2 {
            first.turn(at);
        }
    }
    let said = first.answers.remove(&1).expect("some of it");
    let mut other = ring(&file, &[]);
    other.ask(5, &ask, &said);
    other.run();
    assert_eq!(other.tokens(5).0, expected[7..]);
    // And on the same ones, in a new epoch.
    first.ways.iter_mut().for_each(VecDeque::clear);
    first.devices.iter_mut().for_each(Rounds::clear);
    first.ask(6, &ask, &said);
    first.run();
    assert_eq!((first.tokens(6).0, first.failed.len()), (expected[7..].to_vec(), 0));
}

#[test]
fn smaller_forms_send_fewer_bytes_and_a_text_that_is_read_again_goes_on_as_before() {
    let file = file();
    let ask = ask(&prompt(70), 16);
    let mut sent = Vec::new();
    for wire in Wire::ALL {
        let mut whole = ring_by(&file, &[1], wire);
        whole.ask(1, &ask, &[]);
        whole.turn(0);
        sent.push(whole.ways[1].iter().map(|(.., bytes)| bytes.len()).sum::<usize>());
        whole.turn(1);
        whole.run();
        let (expected, done) = whole.tokens(1);
        assert_eq!((expected.len(), done.is_some(), whole.failed.len()), (16, true, 0), "{wire}");
        if wire == Wire::F32 {
            assert_eq!(expected, alone(&file, &ask));
        }
        // Behind 7 words, all of it is read in other steps than before.
        let mut said = whole.answers.remove(&1).expect("all of it");
        let ends = ends_of(&said);
        said.truncate(ends[6]);
        let mut again = ring_by(&file, &[1], wire);
        again.ask(2, &ask, &said);
        again.run();
        assert_eq!(again.tokens(2).0, expected[7..], "{wire}");
    }
    assert!(sent[1] * 19 < sent[0] * 10 && sent[2] * 3 < sent[0], "{sent:?}");
}

/// Where each word of an answer ends.
pub(crate) fn ends_of(answer: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    while let Some((length, _)) = answer[at..].split_first_chunk::<4>() {
        at += 4 + u32::from_le_bytes(*length) as usize;
        ends.push(at);
    }
    ends
}

#[test]
fn a_hole_is_an_error_and_so_is_what_makes_no_sense() {
    let file = file();
    let mut ring = ring(&file, &[1]);
    let width = file.model.config().width as usize;
    let row = |position: u32, numbers: usize| {
        let numbers = vec![0u8; numbers * 4];
        [&[0], &position.to_le_bytes()[..], &[0, 0], &numbers].concat()
    };
    let (zero, two) = (0u32.to_le_bytes(), 2u32.to_le_bytes());
    for (at, way, bytes, words) in [
        (1, Way::On, row(3, width), "position 3 behind 0"),
        (1, Way::On, row(0, width - 1), "another width"),
        (1, Way::On, row(0, 0), "another width"),
        (1, Way::On, vec![], "no numbers"),
        (1, Way::On, vec![0, 1], "no numbers"),
        (1, Way::On, vec![1, 1], "no numbers"),
        (1, Way::On, vec![3, 1], "an unknown form"),
        (1, Way::On, vec![0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4], "an unknown form"),
        (1, Way::On, vec![0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4], "another width"),
        (1, Way::On, [&[0, 0, 0, 0, 0, 2, 0], &row(0, width)[7..]].concat(), "more is wanted"),
        (0, Way::Round, [two, zero].concat(), "position 2 behind 0"),
        (0, Way::Round, zero.to_vec(), "no token"),
        (0, Way::Round, two.to_vec(), "no token"),
        (0, Way::Round, zero.repeat(2 + READ_STEP), "no token"),
        (0, Way::Round, vec![1, 2, 3], "no token"),
        (0, Way::Again, vec![], "an unknown text"),
        (0, Way::Asked, vec![1, 2, 3], "no text to continue"),
        (0, Way::Asked, ask(&[u32::MAX], 1).pack(), "no token 4294967295"),
        (1, Way::Aside, vec![], "no text to continue"),
    ] {
        ring.ways[at].push_back((1, way, bytes));
        ring.turn(at);
        let (_, failure) = ring.failed.pop().expect("it fails");
        assert!(failure.to_string().contains(words), "{failure}");
    }
    // What was dropped does not come back, whatever is still on its way.
    ring.devices[0].forget(1);
    ring.ask(1, &ask(&prompt(3), 2), &[]);
    ring.run();
    assert_eq!((ring.failed.len(), ring.answers.len()), (1, 0));
    // Another is not held up by one that is wrong.
    ring.ways[1].push_back((2, Way::On, row(0, width)));
    ring.ways[1].push_back((3, Way::On, [&row(0, width)[..7], &[255; 4].repeat(width)].concat()));
    ring.turn(1);
    let failed: Vec<u64> = ring.failed.iter().skip(1).map(|(text, _)| *text).collect();
    assert_eq!(failed, [3]);
}

#[test]
fn devices_that_share_a_model_refuse_to_give_the_numbers_of_a_text() {
    let file = file();
    let mut ring = ring(&file, &[1]);
    ring.ask(1, &Ask::embedding([3, 4, 5].into(), Pooling::Mean), &[]);
    ring.run();
    let [(1, Failure::Model { message })] = &ring.failed[..] else { panic!("{:?}", ring.failed) };
    assert!(message.contains("share a model"), "{message}");
    ring.ask(2, &ask(&[3, 4, 5], 4), &[]);
    ring.run();
    assert_eq!(ring.tokens(2).0.len(), 4, "others go on");
}

/// A question that repeats itself, so that there is something to guess.
fn repeated(temperature: f32, frequency: f32, most: u32) -> Ask {
    let prompt: Vec<Token> = (0..48).map(|at| at % 16 * 7 % 40).collect();
    let mut ask = ask(&prompt, most);
    ask.sampling = Sampling { temperature, frequency, seed: 3, ..Sampling::default() };
    ask
}

#[test]
fn guesses_bring_several_tokens_a_round_and_change_no_word() {
    let (mut guessed, mut right) = (0, 0);
    for name in ["llama", "qwen3", "gemma3"] {
        let file = File::open(&cases().join(format!("{name}.gguf")));
        let layers = file.model.config().layers;
        let cuts: [Vec<u32>; 3] = [vec![], vec![1], (1..layers).collect()];
        for (temperature, frequency) in [(0.0, 0.0), (0.0, 0.4), (0.3, 0.0), (0.8, 0.0)] {
            let ask = repeated(temperature, frequency, 100);
            let expected = alone(&file, &ask);
            // Where time stands still, and where only the way takes some.
            for (cuts, step) in cuts.iter().flat_map(|cuts| [(cuts, 0), (cuts, 1_000)]) {
                let mut ring = ring(&file, cuts);
                ring.step = step;
                ring.ask(1, &ask, &[]);
                ring.run();
                let (tokens, done) = ring.tokens(1);
                let done = done.expect("an end");
                assert_eq!(tokens, expected, "{name} {cuts:?} {temperature} {step}");
                assert_eq!((ring.rounds + done.right as usize, ring.failed.len()), (99, 0));
                assert_eq!(ring.sent - ring.rounds, done.guessed as usize);
                (guessed, right) = (guessed + done.guessed, right + done.right);
            }
            let mut ring = ring(&file, &[1]);
            ring.ask(1, &Ask { guess: false, ..ask }, &[]);
            ring.run();
            assert_eq!((ring.tokens(1).0, ring.rounds, ring.sent), (expected, 99, 99));
        }
    }
    // Both kinds were there.
    assert!(right > 1_000 && guessed > right + 100, "{right} of {guessed}");
}

#[test]
fn a_text_that_is_broken_off_anywhere_among_guesses_goes_on_with_the_same_words() {
    let file = three();
    let ask = repeated(0.3, 0.0, 60);
    let expected = alone(&file, &ask);
    let mut broken = ring(&file, &[1, 2]);
    broken.step = 1_000;
    let (mut turns, mut guessing) = (0, 0);
    for text in 1.. {
        // A new epoch, each time broken off after some more turns of devices.
        broken.ways.iter_mut().for_each(VecDeque::clear);
        broken.devices.iter_mut().for_each(Rounds::clear);
        broken.ask(text, &ask, &[]);
        for turn in 0..turns {
            broken.turn(turn % 3);
        }
        guessing += broken
            .ways
            .iter()
            .flatten()
            .filter(|(_, way, bytes)| *way == Way::Round && bytes.len() > 8)
            .count();
        assert_eq!(broken.failed, []);
        let said = broken.answers.remove(&text).unwrap_or_default();
        let (before, done) = self::said(&said);
        if done.is_some() {
            assert_eq!(before, expected);
            break;
        }
        let mut other = ring(&file, &[1]);
        other.step = 1_000;
        other.ask(1, &ask, &said);
        other.run();
        assert_eq!([before, other.tokens(1).0].concat(), expected, "{turns}");
        turns += 1;
    }
    assert!(turns > 60 && guessing > 5, "{turns} {guessing}");
}

#[test]
fn only_guesses_are_forgotten_for_a_round_that_begins_among_them() {
    let file = three();
    let width = file.model.config().width as usize;
    let rows = |position: u32, rows: usize, wants: u8| {
        let numbers = 0.5f32.to_le_bytes().repeat(width * rows);
        [&[0], &position.to_le_bytes()[..], &[wants, 0], &numbers].concat()
    };
    let round = |position: u32, rows: usize| {
        [&position.to_le_bytes()[..], &7u32.to_le_bytes().repeat(rows)].concat()
    };
    let mut ring = ring(&file, &[1, 2]);
    ring.ask(1, &ask(&[3, 7, 9], 9), &[]);
    (0..2).for_each(|at| assert!(ring.turn(at)));
    for (position, count, is_right) in [
        (0, 1, false),
        (2, 1, false),
        (4, 1, false),
        // A token and three guesses: positions 3 to 6.
        (3, 4, true),
        (3, 4, false),
        (8, 1, false),
        // One of them was right; the next two as well.
        (5, 3, true),
        (5, 1, false),
        (8, 2, true),
        (8, 1, false),
        // All were.
        (10, 1, true),
        (10, 1, false),
        (12, 1, false),
    ] {
        let passed = rows(position, count, count as u8);
        for (at, way, bytes) in [(0, Way::Round, round(position, count)), (1, Way::On, passed)] {
            ring.ways.iter_mut().for_each(VecDeque::clear);
            ring.ways[at].push_back((1, way, bytes));
            ring.turn(at);
            let failed = ring.failed.pop();
            assert_eq!(failed.is_none(), is_right, "{at} {position}: {failed:?}");
            let words = format!("position {position} behind ");
            assert!(failed.is_none_or(|(_, failure)| failure.to_string().contains(&words)));
        }
    }
}

#[test]
fn a_new_epoch_finds_room_in_every_device() {
    let file = three();
    let mut ring = ring(&file, &[1, 2]);
    for text in 1..20 {
        ring.ask(text, &ask(&[3, 7, 9, 4, 1], 4), &[]);
        ring.run();
        assert_eq!((ring.tokens(text).0.len(), &ring.failed[..]), (4, &[][..]));
        ring.devices.iter_mut().for_each(Rounds::clear);
    }
}

#[test]
fn a_text_that_begins_as_an_earlier_one_is_read_from_where_they_differ() {
    let file = three();
    for cuts in [&[][..], &[1], &[1, 2]] {
        let mut ring = ring(&file, cuts);
        let prompt: Vec<Token> = (0..150).map(|at| at * 7 % 40).collect();
        ring.ask(1, &ask(&prompt, 12), &[]);
        ring.run();
        let said = ring.tokens(1).0;
        ring.devices.iter_mut().for_each(|device| device.forget(1));
        // The next question of a conversation, the same question, and another one behind the same words.
        let next = [&prompt[..], &said, &[3, 1, 4, 1, 5]].concat();
        let other = [&prompt[..100], &[9, 2, 6]].concat();
        // The last word was said and not computed, and the first device does not hear which of the last guesses were right.
        for (text, prompt, found) in [
            (2, &next, 150..162),
            (3, &next, 166..167),
            (4, &other, 100..101),
            (5, &prompt, 149..150),
        ] {
            let ask = ask(prompt, 9);
            ring.holds_aside = text == 3;
            ring.ask(text, &ask, &[]);
            ring.run();
            ring.holds_aside = false;
            ring.run();
            let (tokens, done) = ring.tokens(text);
            assert_eq!(tokens, alone(&file, &ask), "{cuts:?} {text}");
            let done = done.expect("an end");
            assert!(found.contains(&done.found), "{cuts:?} {text}: {}", done.found);
            ring.devices.iter_mut().for_each(|device| device.forget(text));
        }
        // A device that has nothing of it any more says so, and so does one that lost some of it.
        for (text, at) in (6..).zip(0..ring.devices.len()) {
            ring.devices[at].clear();
            let ask = ask(&next, 9);
            ring.ask(text, &ask, &[]);
            ring.run();
            let (tokens, done) = ring.tokens(text);
            assert_eq!((tokens, done.expect("an end").found), (alone(&file, &ask), 0));
            assert_eq!(ring.begun_again, at, "the first one knows by itself");
            ring.devices.iter_mut().for_each(|device| device.forget(text));
        }
        assert_eq!(ring.failed, []);
    }
}

#[test]
fn whoever_still_has_what_of_earlier_texts_the_words_are_the_same() {
    let file = three();
    let (mut found, mut begun_again) = (0, 0);
    for seed in 1..=20_u64 {
        let mut draws = seed;
        let mut below = |most: u64| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (draws >> 33) % most
        };
        let mut ring = ring(&file, &[1, 2]);
        ring.step = 1_000;
        // Texts that are over, as the devices do not know yet.
        let mut over: Vec<(usize, u64)> = Vec::new();
        for text in 1..=12 {
            let common = 20 + below(140) as u32;
            let own = 1 + below(3) as u32;
            let prompt = (0..common).map(|at| at * 7 % 40);
            let prompt: Vec<Token> = prompt.chain((0..own).map(|at| at + 3)).collect();
            let ask = ask(&prompt, 8);
            if below(4) == 0 && text > 1 {
                ring.devices[1 + below(2) as usize].clear();
                over.clear();
                (1..text).for_each(|text| {
                    ring.devices.iter_mut().for_each(|device| device.forget(text));
                });
            }
            ring.ask(text, &ask, &[]);
            let mut turns = 0;
            while ring.tokens(text).1.is_none() {
                ring.turn(below(3) as usize);
                let few = (0..3).all(|at| over.iter().filter(|(of, _)| *of == at).count() < 3);
                if !over.is_empty() && (!few || below(8) == 0) {
                    let (at, text) = over.swap_remove(below(over.len() as u64) as usize);
                    ring.devices[at].forget(text);
                }
                turns += 1;
                assert!(turns < 10_000 && ring.failed.is_empty(), "{seed}: {:?}", ring.failed);
            }
            let (tokens, done) = ring.tokens(text);
            assert_eq!(tokens, alone(&file, &ask), "{seed} {text}");
            found += usize::from(done.expect("an end").found > 0);
            over.extend((0..3).map(|at| (at, text)));
            while let Some(at) =
                (0..3).find(|at| over.iter().filter(|(of, _)| of == at).count() > 2)
            {
                let first = over.iter().position(|(of, _)| *of == at).expect("one");
                let (at, text) = over.remove(first);
                ring.devices[at].forget(text);
            }
        }
        begun_again += ring.begun_again;
    }
    assert!(found > 60 && begun_again > 10, "{found} {begun_again}");
}
