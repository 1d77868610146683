//! What is left of conversations that are over: their positions stay in seats that nobody needs, the least recently used
//! give way first. A text that begins as one of them does goes on behind what both have in common. The numbers of a
//! position follow from the tokens up to there and from nothing else, so the words are those it would say without.

use std::collections::VecDeque;

use shoal_text::{Answer, Token};

use super::lanes::LANES;
use super::whole::Holds;

/// Fewer positions are computed about as fast as they are copied.
const LEAST: usize = LANES;

#[derive(Default)]
pub(super) struct Rests {
    /// The least recently used first.
    kept: VecDeque<Rest>,
}

struct Rest {
    sequence: u64,
    /// Whose positions the engine holds.
    tokens: Vec<Token>,
}

/// Where a text can begin.
#[derive(Clone, Copy)]
enum Source {
    /// A rest, by its place.
    Rest(usize),
    /// A conversation that goes on, by its sequence.
    Open(u64),
}

impl Rests {
    /// A conversation is over.
    pub(super) fn keep<C: Holds>(&mut self, engine: &mut C, sequence: u64, tokens: &[Token]) {
        if tokens.len() < LEAST {
            engine.drop_sequence(sequence);
            return;
        }
        // What it goes on from says nothing more.
        self.kept.retain(|rest| {
            let is_more = !tokens.starts_with(&rest.tokens);
            if !is_more {
                engine.drop_sequence(rest.sequence);
            }
            is_more
        });
        self.kept.push_back(Rest { sequence, tokens: tokens.to_vec() });
    }

    /// Begins a conversation beside those that go on, where there are so many seats for all: gives its sequence, which is
    /// `own` if it is a new one.
    pub(super) fn begin<C: Holds>(
        &mut self,
        engine: &mut C,
        own: u64,
        (others, seats): (&[(u64, &[Token])], usize),
        answer: &mut Answer,
    ) -> u64 {
        let (found, source) = self.best(others, answer);
        if let Some(Source::Rest(at)) = source
            && self.kept.get(at).is_some_and(|rest| rest.tokens.len() == found)
            && let Some(rest) = self.kept.remove(at)
        {
            // It goes on.
            answer.begin_behind(found);
            return rest.sequence;
        }
        let is_full = others.len() + self.kept.len() >= seats;
        let source = match (source, is_full) {
            (Some(Source::Rest(0)), true) => {
                let Some(rest) = self.kept.pop_front() else { return own };
                if engine.truncate(rest.sequence, found as u32).is_ok() {
                    answer.begin_behind(found);
                    return rest.sequence;
                }
                engine.drop_sequence(rest.sequence);
                return own;
            }
            (Some(Source::Rest(at)), _) => self.used(at),
            (Some(Source::Open(sequence)), _) => Some(sequence),
            (None, _) => None,
        };
        if is_full && let Some(oldest) = self.kept.pop_front() {
            engine.drop_sequence(oldest.sequence);
        }
        if let Some(from) = source
            && engine.copy_prefix(from, own, found as u32).is_ok()
        {
            answer.begin_behind(found);
        }
        own
    }

    /// What has most in common with a text, and how much; of several the most recently used.
    fn best(&self, others: &[(u64, &[Token])], answer: &Answer) -> (usize, Option<Source>) {
        let open = others.iter().map(|(sequence, tokens)| (*tokens, Source::Open(*sequence)));
        let rests = self.kept.iter().enumerate();
        let rests = rests.map(|(at, rest)| (rest.tokens.as_slice(), Source::Rest(at)));
        let all = open.chain(rests).map(|(tokens, source)| (answer.in_common(tokens), source));
        match all.max_by_key(|(found, _)| *found) {
            Some((found, source)) if found >= LEAST => (found, Some(source)),
            Some(_) | None => (0, None),
        }
    }

    /// The sequence of a rest, which was used now.
    fn used(&mut self, at: usize) -> Option<u64> {
        let rest = self.kept.remove(at)?;
        let sequence = rest.sequence;
        self.kept.push_back(rest);
        Some(sequence)
    }
}
