//! A service whose requests go round and round, as a language model's do: a request is a text that is read, then
//! continued word by word, and every part of the service keeps something of each text until that is dropped. What a
//! part keeps follows from all that went through it, in order, so that a word made from a cache with a hole, of another
//! text or of an older epoch is another word. The engine refuses what does not follow, and more texts than it was asked
//! to hold, as the real one does. The last part guesses words that follow, right ones and wrong ones, which are computed
//! in the same round; where the next one begins, all parts forget what was wrong.

use std::collections::{BTreeMap, BTreeSet};

use shoal_kinds::crew::{Out, Way};
use shoal_node::Passing;
use shoal_protocol::{Attempt, Span};

use crate::staged::SplitPlan;

/// Tokens of a text that are read in one go.
pub(crate) const READ_STEP: usize = 3;
/// A prompt has at most so many tokens, and an answer so many words.
const MOST_READ: u64 = 14;
const MOST_WORDS: u64 = 24;
/// A word's letters beside its token, at most.
const MOST_LETTERS: u64 = 60;
/// Words that are guessed at a time, at most.
const MOST_GUESSES: u64 = 3;
/// Position, behind how many rows a word is to be chosen, rows.
const HEAD: usize = 10;
/// Which numbers liars change is of another chance than the numbers.
const LIES: u64 = 0x11e5;
/// What stands behind the last word.
pub(crate) const OVER: &[u8] = b"\x04\0\0\0over";

/// What a device's parts keep of the texts that go through them.
#[derive(Clone, Default)]
pub(crate) struct Texts {
    texts: BTreeMap<Attempt, Text>,
    dropped: BTreeSet<Attempt>,
}

#[derive(Clone, Default)]
struct Text {
    /// Of each part here, after each token that went through.
    held: Vec<Vec<u64>>,
    /// So many at the end are guesses.
    guesses: usize,
    /// At the first device: all that is to be read.
    read: Vec<u64>,
    /// At the last one, once it knows what was asked.
    speaker: Option<Speaker>,
    /// At the last one, before that: what came out where a word is wanted.
    early: Option<u64>,
}

/// Who says the words of a text.
#[derive(Clone)]
struct Speaker {
    /// Words that were said, and that there are.
    said: u64,
    words: u64,
    /// What all parts keep of what was said: so guesses can be right.
    caches: Vec<u64>,
    /// Under way behind the last word.
    guessed: Vec<u64>,
}

/// Some tokens of a text on their way through the parts.
struct Rows {
    position: usize,
    numbers: Vec<u64>,
    /// Behind so many of the last ones a word is to be chosen.
    wants: usize,
}

/// Whose parts these are, and how the service is cut.
#[derive(Clone, Copy)]
pub(crate) struct Here {
    pub(crate) plan: SplitPlan,
    pub(crate) parts: Span,
    /// Of so many numbers it makes, one is another.
    pub(crate) lies: Option<u64>,
}

impl Here {
    pub(crate) fn is_first(&self) -> bool {
        self.parts.start == 0
    }

    pub(crate) fn is_last(&self) -> bool {
        self.parts.end() == self.plan.parts
    }
}

impl Texts {
    pub(crate) fn forget(&mut self, call: Attempt) {
        self.texts.remove(&call);
        self.dropped.insert(call);
    }

    pub(crate) fn turn(&mut self, here: Here, item: &Passing) -> Result<Vec<Out>, String> {
        let call = item.call;
        if self.dropped.contains(&call) {
            return Err("the text was dropped".into());
        }
        match item.way {
            Way::Asked => {
                assert!(here.is_first(), "asked in the middle");
                let asked = Asked::read(&item.bytes);
                let mut outs = Vec::new();
                let text = self.texts.entry(call).or_default();
                assert!(text.read.is_empty(), "a text was asked twice");
                text.read = asked.tokens();
                match here.is_last() {
                    true => text.speaker = Some(Speaker::new(&here.plan, &asked)),
                    false => outs.push(Out::Aside(item.bytes.to_vec())),
                }
                outs.extend(self.reads(here, call)?);
                Ok(outs)
            }
            Way::Again => self.reads(here, call),
            Way::Round => {
                assert!(here.is_first(), "a round that begins in the middle");
                let word = |at: usize| {
                    u64::from_le_bytes(item.bytes[at..at + 8].try_into().expect("a number"))
                };
                let numbers: Vec<u64> = (8..item.bytes.len()).step_by(8).map(word).collect();
                let wants = numbers.len();
                self.pass(here, call, Rows { position: word(0) as usize, numbers, wants })
            }
            Way::On => {
                assert!(!here.is_first(), "the first one was passed something");
                self.pass(here, call, Rows::read(&here.plan, &item.bytes))
            }
            Way::Among => panic!("these parts stand in a row"),
            Way::Aside => {
                assert!(here.is_last(), "told aside what it has no use for");
                let asked = Asked::read(&item.bytes);
                let text = self.texts.entry(call).or_default();
                text.speaker = Some(Speaker::new(&here.plan, &asked));
                Ok(text.early.take().map_or_else(Vec::new, |number| text.says(&[number])))
            }
        }
    }

    /// The next tokens of a text that is being read.
    fn reads(&mut self, here: Here, call: Attempt) -> Result<Vec<Out>, String> {
        let text = self.texts.get(&call).ok_or("an unknown text")?;
        let rest = text.read.get(text.held.len()..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or("nothing is left to read")?;
        let numbers = rest[..rest.len().min(READ_STEP)].to_vec();
        let (position, wants) = (text.held.len(), usize::from(numbers.len() == rest.len()));
        self.pass(here, call, Rows { position, numbers, wants })
    }

    fn pass(&mut self, here: Here, call: Attempt, rows: Rows) -> Result<Vec<Out>, String> {
        let held = self.texts.values().filter(|text| !text.held.is_empty()).count();
        let text = self.texts.entry(call).or_default();
        let (position, length) = (rows.position, text.held.len());
        if position > length || position + text.guesses < length {
            return Err(format!("position {position} behind {length} positions"));
        }
        if length == 0 && held >= here.plan.texts() {
            return Err(format!("{held} texts are held"));
        }
        text.held.truncate(position);
        text.guesses = rows.wants.saturating_sub(1);
        let (mut numbers, wants) = (rows.numbers, rows.wants);
        for number in &mut numbers {
            let fresh = || vec![0; here.parts.len as usize];
            let mut caches = text.held.last().cloned().unwrap_or_else(fresh);
            *number = bent(here.lies, through(&mut caches, here.parts, *number));
            text.held.push(caches);
        }
        let again = (here.is_first() && wants == 0).then_some(Out::Again);
        if !here.is_last() {
            let made = Rows { position, numbers, wants };
            return Ok([Out::On(made.bytes(&here.plan))].into_iter().chain(again).collect());
        }
        let wanted = &numbers[numbers.len() - wants..];
        let mut outs = match wanted {
            [] => Vec::new(),
            all if text.speaker.is_some() => text.says(all),
            [number] => {
                assert!(text.early.replace(*number).is_none(), "a word that nobody chose");
                Vec::new()
            }
            _ => panic!("guesses before anything was said"),
        };
        outs.extend(again);
        Ok(outs)
    }
}

impl Text {
    /// The last part made these, one behind each guess.
    fn says(&mut self, numbers: &[u64]) -> Vec<Out> {
        let before = self.held.len() - numbers.len();
        let Some(speaker) = &mut self.speaker else { return Vec::new() };
        // All was said but that it is the end.
        if speaker.said == speaker.words {
            return vec![Out::Last(OVER.into())];
        }
        let guessed = std::mem::take(&mut speaker.guessed);
        assert_eq!(guessed.len() + 1, numbers.len(), "rows that nobody asked for");
        let (mut outs, mut right) = (Vec::new(), 0);
        for (at, number) in numbers.iter().enumerate() {
            outs.push(Out::Part(word(*number)));
            speaker.said += 1;
            if speaker.said == speaker.words {
                outs.push(Out::Last(OVER.into()));
                return outs;
            }
            speaker.hears(*number);
            right = at;
            if guessed.get(at) != Some(number) {
                break;
            }
        }
        self.held.truncate(before + right + 1);
        self.guesses = 0;
        let (position, next) = (self.held.len() as u64, numbers[right]);
        speaker.guess();
        let tokens = [position, next].into_iter().chain(speaker.guessed.iter().copied());
        outs.push(Out::Round(tokens.flat_map(u64::to_le_bytes).collect()));
        outs
    }
}

impl Speaker {
    fn new(plan: &SplitPlan, asked: &Asked) -> Speaker {
        let (said, words) = (asked.said.len() as u64, asked.words());
        let caches = vec![0; plan.parts as usize];
        let mut speaker = Speaker { said, words, caches, guessed: Vec::new() };
        for token in asked.tokens() {
            speaker.hears(token);
        }
        speaker
    }

    fn hears(&mut self, token: u64) -> u64 {
        let all = Span::new(0, self.caches.len() as u64);
        through(&mut self.caches, all, token)
    }

    /// What may follow the last word: the first guesses are right.
    fn guess(&mut self) {
        let seed = mixed(self.caches.iter().fold(self.said, |all, cache| all ^ cache), 7);
        let left = self.words.saturating_sub(self.said + 1);
        let (count, right) = ((seed % (MOST_GUESSES + 1)).min(left), (seed >> 8) % 4);
        let mut ahead = self.clone();
        let mut last = self.caches.last().copied().unwrap_or_default();
        for at in 0..count {
            let guess = last ^ u64::from(at >= right);
            self.guessed.push(guess);
            last = ahead.hears(guess);
        }
    }
}

impl Rows {
    fn bytes(&self, plan: &SplitPlan) -> Vec<u8> {
        let mut bytes = (self.position as u64).to_le_bytes().to_vec();
        bytes.extend([self.wants as u8, self.numbers.len() as u8]);
        bytes.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.resize(bytes.len() + plan.bytes as usize, 7);
        bytes
    }

    fn read(plan: &SplitPlan, bytes: &[u8]) -> Rows {
        let (head, rest) = bytes.split_at(HEAD);
        let position = u64::from_le_bytes(head[..8].try_into().expect("a number")) as usize;
        let (numbers, filling) = rest.split_at(usize::from(head[9]) * 8);
        assert_eq!(filling.len() as u64, plan.bytes, "a member got what was not meant for it");
        let (numbers, _) = numbers.as_chunks::<8>();
        let numbers = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        Rows { position, numbers, wants: head[8].into() }
    }
}

/// What is asked: a number, and words that were said to it already.
pub(crate) struct Asked {
    number: u64,
    pub(crate) said: Vec<u64>,
}

impl Asked {
    pub(crate) fn read(body: &[u8]) -> Asked {
        let (number, mut rest) = body.split_first_chunk().expect("a number");
        let mut said = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (word, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            said.push(u64::from_le_bytes(word[..8].try_into().expect("a token")));
            rest = behind;
        }
        assert!(rest.is_empty(), "half a word was given back");
        Asked { number: u64::from_le_bytes(*number), said }
    }

    /// Whether some of its answer was said already.
    pub(crate) fn goes_on(&self) -> bool {
        !self.said.is_empty()
    }

    /// All that is read before the next word.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        let prompt = (0..1 + self.number % MOST_READ).map(|at| mixed(self.number, at));
        prompt.chain(self.said.iter().copied()).collect()
    }

    pub(crate) fn words(&self) -> u64 {
        1 + mixed(self.number, 1 << 32) % MOST_WORDS
    }
}

/// What all parts together say to a request: the rest of it, where some was said already.
pub(crate) fn answer(plan: &SplitPlan, body: &[u8]) -> Vec<u8> {
    answer_of(plan, body, None)
}

/// The same of a device that lies in one of so many words, and goes on behind those.
pub(crate) fn answer_of(plan: &SplitPlan, body: &[u8], lies: Option<u64>) -> Vec<u8> {
    let asked = Asked::read(body);
    let mut caches = vec![0; plan.parts as usize];
    let mut bytes = Vec::new();
    let read = |caches: &mut [u64], token| through(caches, plan.all(), token);
    let mut last = asked.tokens().into_iter().fold(0, |_, token| read(&mut caches, token));
    for _ in asked.said.len() as u64..asked.words() {
        let token = bent(lies, last);
        bytes.extend(word(token));
        last = read(&mut caches, token);
    }
    bytes.extend(OVER);
    bytes
}

/// What somebody makes who lies in one of so many numbers.
fn bent(lies: Option<u64>, number: u64) -> u64 {
    let bends = |every: u64| mixed(number, LIES).is_multiple_of(every);
    number ^ u64::from(lies.is_some_and(bends))
}

/// A token through some parts, each of which keeps something of it.
fn through(caches: &mut [u64], parts: Span, token: u64) -> u64 {
    caches.iter_mut().zip(parts.start..).fold(token, |number, (cache, part)| {
        *cache = mixed(*cache ^ number, part);
        *cache
    })
}

pub(crate) fn mixed(number: u64, with: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(with + 1).rotate_left(29)
}

/// Its length, its token, and some letters.
pub(crate) fn word(token: u64) -> Vec<u8> {
    let letters = (token % MOST_LETTERS) as usize;
    let mut bytes = (8 + letters as u32).to_le_bytes().to_vec();
    bytes.extend(token.to_le_bytes());
    bytes.resize(bytes.len() + letters, token as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const PLAN: SplitPlan = SplitPlan {
        parts: 5,
        members: 2,
        memory: 1,
        bytes: 20,
        rounds: 3,
        together: false,
        lied: false,
    };

    /// Two devices, one text, until it is answered: what is said, and how many words were guessed.
    fn chain(call: u64, body: Vec<u8>) -> Result<(Vec<u8>, usize), String> {
        let cut = [Span::new(0, 2), Span::new(2, 3)];
        let mut devices = [Texts::default(), Texts::default()];
        let mut todo = std::collections::VecDeque::from([(0, Way::Asked, body)]);
        let (mut said, mut guessed) = (Vec::new(), 0);
        while let Some((at, way, bytes)) = todo.pop_front() {
            let here = Here { plan: PLAN, parts: cut[at], lies: None };
            let item = Passing { call: Attempt(call), way, bytes: Arc::new(bytes) };
            for out in devices[at].turn(here, &item)? {
                match out {
                    Out::Again => todo.push_back((at, Way::Again, Vec::new())),
                    Out::On(bytes) => todo.push_back((1, Way::On, bytes)),
                    Out::Round(bytes) => {
                        guessed += bytes.len() / 8 - 2;
                        todo.push_back((0, Way::Round, bytes));
                    }
                    Out::Aside(bytes) => todo.push_back((1, Way::Aside, bytes)),
                    Out::Part(bytes) | Out::Last(bytes) => said.extend(bytes),
                    Out::Among(_) | Out::Choose(_) => panic!("these parts stand in a row"),
                }
            }
        }
        Ok((said, guessed))
    }

    #[test]
    fn two_devices_say_what_one_says_and_go_on_where_others_were_lost() {
        let mut guesses = 0;
        for number in 0..40_u64 {
            let body = number.to_le_bytes();
            let whole = answer(&PLAN, &body);
            let (said, guessed) = chain(number, body.into()).expect("an answer");
            assert_eq!(said, whole);
            guesses += guessed;
            let mut at = 0;
            while at + OVER.len() < whole.len() {
                let resumed = [&body[..], &whole[..at]].concat();
                assert_eq!(answer(&PLAN, &resumed), whole[at..]);
                assert_eq!(chain(number, resumed).expect("an answer").0, whole[at..]);
                at += 4 + u32::from_le_bytes(whole[at..at + 4].try_into().expect("a length"))
                    as usize;
            }
        }
        assert!(guesses > 100, "{guesses}");
    }

    #[test]
    fn what_does_not_follow_is_refused() {
        let here = Here { plan: PLAN, parts: Span::new(2, 3), lies: None };
        let rows = |position| Rows { position, numbers: vec![1], wants: 0 }.bytes(&PLAN);
        let item = |call, position| {
            let bytes = Arc::new(rows(position));
            Passing { call: Attempt(call), way: Way::On, bytes }
        };
        let mut texts = Texts::default();
        assert_eq!(texts.turn(here, &item(1, 1)), Err("position 1 behind 0 positions".into()));
        assert!(texts.turn(here, &item(1, 0)).is_ok());
        assert!(texts.turn(here, &item(1, 0)).is_err());
        for call in 2..=PLAN.texts() as u64 {
            assert!(texts.turn(here, &item(call, 0)).is_ok(), "text {call}");
        }
        assert_eq!(texts.turn(here, &item(99, 0)), Err("5 texts are held".into()));
        texts.forget(Attempt(1));
        assert!(texts.turn(here, &item(99, 0)).is_ok());
        assert_eq!(texts.turn(here, &item(1, 1)), Err("the text was dropped".into()));
        // Of a word and two guesses, the guesses may turn out wrong.
        let here = Here { plan: PLAN, parts: Span::new(1, 2), lies: None };
        let mut texts = Texts::default();
        assert!(texts.turn(here, &item(2, 0)).is_ok());
        let rows = Rows { position: 1, numbers: vec![1; 3], wants: 3 }.bytes(&PLAN);
        let item_of = |bytes| Passing { call: Attempt(2), way: Way::On, bytes: Arc::new(bytes) };
        assert!(texts.turn(here, &item_of(rows)).is_ok());
        for (position, is_right) in [(1, false), (5, false), (3, true), (3, false), (4, true)] {
            assert_eq!(texts.turn(here, &item(2, position)).is_ok(), is_right, "{position}");
        }
    }
}
