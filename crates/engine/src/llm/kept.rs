//! What a device in a chain has of texts that are over: their positions stay while nobody needs the room, the least
//! recently used give way first. The first device finds a text that begins as one of them did. The others are told which
//! one that is, and from where on it is another: they have it, or say that they do not.

use std::collections::VecDeque;

use shoal_text::Token;

use super::lanes::LANES;

/// Fewer positions are computed about as fast as they are looked for.
pub(super) const LEAST: usize = LANES;

#[derive(Default)]
pub(super) struct Kept {
    /// The least recently used first.
    rests: VecDeque<Rest>,
}

pub(super) struct Rest {
    pub(super) text: u64,
    /// The stage's name for its positions.
    pub(super) sequence: u64,
    /// Positions, none of which is a guess.
    pub(super) length: u32,
    /// At the first device, as many as positions.
    pub(super) tokens: Vec<Token>,
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.rests.len()
    }

    /// A text is over. Gives what goes for it: what it went on from says nothing more.
    pub(super) fn keep(&mut self, rest: Rest) -> Vec<Rest> {
        let is_less =
            |other: &Rest| !other.tokens.is_empty() && rest.tokens.starts_with(&other.tokens);
        let all = std::mem::take(&mut self.rests);
        let (less, more): (Vec<Rest>, Vec<Rest>) = all.into_iter().partition(is_less);
        self.rests = more.into();
        self.rests.push_back(rest);
        less
    }

    /// What has most in common with a text, and how much; of several the most recently used. What follows the last token
    /// is not known, so that one is computed in any case.
    pub(super) fn best(&self, read: &[Token]) -> Option<(u64, u32)> {
        let read = &read[..read.len().saturating_sub(1)];
        let in_common = |rest: &Rest| {
            let same = rest.tokens.iter().zip(read).take_while(|(own, other)| own == other);
            (rest.text, same.count())
        };
        let best = self.rests.iter().map(in_common).max_by_key(|(_, found)| *found);
        best.filter(|(_, found)| *found >= LEAST).map(|(text, found)| (text, found as u32))
    }

    /// Takes out what is left of a text, if it is so long.
    pub(super) fn take(&mut self, text: u64, least: u32) -> Option<Rest> {
        let fits = |rest: &Rest| rest.text == text && rest.length >= least;
        self.rests.remove(self.rests.iter().position(fits)?)
    }

    /// It was used now.
    pub(super) fn put_back(&mut self, rest: Rest) {
        self.rests.push_back(rest);
    }

    /// Takes out what gives way first, but not this one.
    pub(super) fn oldest(&mut self, but: Option<u64>) -> Option<Rest> {
        let at = self.rests.iter().position(|rest| Some(rest.text) != but)?;
        self.rests.remove(at)
    }
}
