//! What a node is asked to say, and what it says while it speaks.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Deserializer, Serialize};

use crate::embed::Pooling;
use crate::form::Form;
use crate::sample::{Chosen, Sampling};
use crate::vocabulary::Token;

/// Bytes of one word of an answer: a token with all its alternatives has some hundreds.
const MOST_WORD_BYTES: usize = 1 << 16;

/// A text that is to be continued.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub prompt: Vec<Token>,
    /// Tokens to say at most.
    pub most: u32,
    /// Tokens that end the answer.
    pub ends: Vec<Token>,
    pub sampling: Sampling,
    /// What the answer must look like, if that is not free.
    pub form: Option<Form>,
    /// Not what follows the text is wanted, but the text as numbers.
    pub embed: Option<Pooling>,
    /// Tokens may be guessed before they are chosen, where that makes the answer come sooner.
    pub guess: bool,
}

/// An ask as a node gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub ask: Ask,
    /// What another node said to it before it was lost: the answer goes on behind it.
    pub said: Vec<Token>,
}

impl Ask {
    /// Behind its length: whatever was said to it may follow.
    pub fn pack(&self) -> Vec<u8> {
        framed(self)
    }
}

impl Asked {
    /// None if it is no ask, or what follows it is no answer that can be gone on with.
    pub fn unpack(bytes: &[u8]) -> Option<Asked> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (ask, said) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let ask = postcard::from_bytes(ask).ok()?;
        let mut words = Words { begun: said.into(), taken: 0 };
        let mut said = Vec::new();
        while let Some(word) = words.take().ok()? {
            let Said::Token(chosen) = word else { return None };
            said.push(chosen.token);
        }
        let rest = words.begun.len() - words.taken;
        (rest == 0).then_some(Asked { ask, said })
    }

    /// All tokens that are read before the next one is chosen.
    pub fn read(&self) -> Vec<Token> {
        [self.ask.prompt.as_slice(), &self.said].concat()
    }
}

/// Why an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The model said so.
    End,
    /// As many tokens as were asked for, or as fit.
    Length,
}

/// A word of a node. The tokens follow from what was asked alone, so that another node goes on where one was lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    Token(Chosen),
    /// Nothing follows.
    Done(Done),
    /// Some of the numbers of a text, in order.
    Embedding(Box<[f32]>),
}

/// How an answer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub why: Why,
    /// Microseconds for the prompt, and for what was said.
    pub prompt_micros: u64,
    pub answer_micros: u64,
    /// Tokens of the prompt that need not be computed, because an earlier text began with the same ones.
    pub found: u32,
    /// Tokens of the answer that were guessed before they were chosen, and those of them that were chosen then.
    pub guessed: u32,
    pub right: u32,
    /// Tokens of the answer that others had said before this device went on. Appended: who left it out did not count them.
    #[serde(deserialize_with = "read_taken_over")]
    pub taken_over: u32,
}

/// Words of older devices end before it.
fn read_taken_over<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(u32::deserialize(from).unwrap_or_default())
}

impl Done {
    /// Before anything is counted.
    pub fn new(why: Why) -> Done {
        let (prompt_micros, answer_micros, found) = (0, 0, 0);
        Done { why, prompt_micros, answer_micros, found, guessed: 0, right: 0, taken_over: 0 }
    }
}

/// A word as it travels, behind its length.
pub fn pack(said: &Said) -> Vec<u8> {
    framed(said)
}

fn framed(what: &impl Serialize) -> Vec<u8> {
    let body = postcard::to_allocvec(what).unwrap_or_default();
    let mut bytes = Vec::with_capacity(body.len() + 4);
    bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// What a node said cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node's answer cannot be read: {0}")]
pub struct Garbled(String);

/// Puts words together from parts that end anywhere.
#[derive(Debug, Default)]
pub struct Words {
    begun: Vec<u8>,
    /// Bytes of it that were taken.
    taken: usize,
}

impl Words {
    pub fn push(&mut self, part: &[u8]) {
        self.begun.extend_from_slice(part);
    }

    /// The next word, if all of it is there.
    pub fn take(&mut self) -> Result<Option<Said>, Garbled> {
        let left = &self.begun[self.taken..];
        let Some((length, rest)) = left.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MOST_WORD_BYTES {
            return Err(Garbled(alloc::format!("a word of {length} bytes")));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let said =
            postcard::from_bytes(body).map_err(|error| Garbled(alloc::format!("{error}")))?;
        self.taken += 4 + length;
        // Not for every word: what is left would be moved as often as there are words.
        if self.taken * 2 > self.begun.len() {
            self.begun.drain(..self.taken);
            self.taken = 0;
        }
        Ok(Some(said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_however_they_are_cut() {
        let token = |token| {
            Said::Token(Chosen { token, chance: Some(-0.5), alternatives: [(1, -0.5)].into() })
        };
        let (prompt_micros, answer_micros) = (5, u64::MAX);
        let counts = Done { found: 3, guessed: 5, right: 4, ..Done::new(Why::Length) };
        let counts = Done { taken_over: 6, ..counts };
        let done = Said::Done(Done { prompt_micros, answer_micros, ..counts });
        let numbers = Said::Embedding([0.5, -1.0].into());
        let all = [token(7), token(70_000), numbers, done];
        let bytes: Vec<u8> = all.iter().flat_map(pack).collect();
        for size in [1, 3, 7, bytes.len()] {
            let (mut words, mut found) = (Words::default(), Vec::new());
            for part in bytes.chunks(size) {
                words.push(part);
                while let Some(said) = words.take().unwrap() {
                    found.push(said);
                }
            }
            assert_eq!(found, all);
        }
        // An older device does not say what it took over.
        let older = postcard::to_allocvec(&Said::Done(counts)).unwrap();
        let older = postcard::from_bytes(&older[..older.len() - 1]);
        assert_eq!(older, Ok(Said::Done(Done { taken_over: 0, ..counts })));
        let mut words = Words::default();
        words.push(&[255; 8]);
        assert!(words.take().is_err());
        let ask = Ask {
            prompt: [1, 2].into(),
            most: 3,
            ends: [2].into(),
            sampling: Sampling::default(),
            form: Some(Form::Schema("{}".into())),
            embed: Some(Pooling::Last),
            guess: true,
        };
        assert_eq!(Asked::unpack(&ask.pack()), Some(Asked { ask: ask.clone(), said: Vec::new() }));
        // Another goes on behind what was said.
        let chosen = |token| Chosen { token, chance: None, alternatives: Vec::new() };
        let said = [5, 6].map(|token| pack(&Said::Token(chosen(token)))).concat();
        let again = Asked::unpack(&[ask.pack(), said].concat()).unwrap();
        assert_eq!((again.read(), again.said.clone()), ([1, 2, 5, 6].into(), [5, 6].into()));
        let done = Done::new(Why::End);
        for wrong in [pack(&Said::Done(done)), [9, 0, 0, 0, 1].into(), [1].into()] {
            assert_eq!(Asked::unpack(&[ask.pack(), wrong].concat()), None);
        }
        assert_eq!((Asked::unpack(&[]), Asked::unpack(&[255; 9])), (None, None));
    }
}
