//! Guessing the next tokens of an answer from what was asked and said: where the same tokens stood before, the same ones
//! may follow. A guess costs a row in a step that is computed anyway, and a right one saves a step. Whether it is right
//! is decided by choosing as without it, so that the words are the same.

use crate::vocabulary::Token;

/// Tokens guessed at a time: more are seldom all right, and each row costs.
const MOST: usize = 8;
/// Tokens that must have stood there before: one says little.
const LEAST_SAME: usize = 2;
/// More tokens that are the same do not make a guess better.
const MOST_SAME: usize = 6;

/// What a step costs that computes one token. Prices of rows are in the same measure.
pub const STEP_PRICE: u32 = 64;
const STEP: i64 = STEP_PRICE as i64;
/// For each token said. Guesses cost no more than this part of the time, and what was given at the beginning.
const INCOME: i64 = 1;
const FIRST: i64 = STEP;
/// What right guesses save is not kept for ever: a text may change.
const RICHEST: i64 = 4 * STEP;

/// What one answer may spend on guesses.
#[derive(Debug)]
pub(crate) struct Lookup {
    credit: i64,
    /// As many as seemed worth it lately.
    length: usize,
    /// Guessed so far, and those among them that were right.
    pub(crate) guessed: u32,
    pub(crate) right: u32,
}

impl Lookup {
    pub(crate) fn new() -> Lookup {
        Lookup { credit: FIRST, length: MOST / 2, guessed: 0, right: 0 }
    }

    /// What may follow these tokens, at most so many, where each costs so much.
    pub(crate) fn guess<'a>(&self, tokens: &'a [Token], most: usize, price: u32) -> &'a [Token] {
        let affordable = usize::try_from(self.credit / i64::from(price.max(1))).unwrap_or(0);
        following(tokens, most.min(self.length).min(affordable))
    }

    /// So many were guessed at this price, and so many of them right. A token was said in any case.
    pub(crate) fn learn(&mut self, guessed: usize, right: usize, price: u32) {
        self.guessed += guessed as u32;
        self.right += right as u32;
        let (cost, gain) = (guessed as i64 * i64::from(price), right as i64 * STEP);
        self.credit = (self.credit + INCOME + gain - cost).clamp(0, RICHEST);
        if guessed > 0 {
            self.length = if right == guessed { 2 * guessed } else { right + 1 }.clamp(2, MOST);
        }
    }
}

/// What stood behind the last of these tokens when they stood in the text before: behind the longest such run, and of
/// equals the last one.
fn following(tokens: &[Token], most: usize) -> &[Token] {
    if most == 0 {
        return &[];
    }
    let (mut best, mut from) = (LEAST_SAME - 1, 0);
    for end in (LEAST_SAME..tokens.len()).rev() {
        let same = tokens[..end].iter().rev().zip(tokens.iter().rev());
        let same = same.take(MOST_SAME).take_while(|(before, now)| before == now).count();
        if same > best {
            (best, from) = (same, end);
            if same == MOST_SAME {
                break;
            }
        }
    }
    if from == 0 { &[] } else { &tokens[from..tokens.len().min(from + most)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_behind_the_longest_run_is_guessed() {
        assert_eq!(following(&[1, 2, 3, 4, 9, 1, 2], 2), [3, 4]);
        assert_eq!(following(&[1, 2, 3, 4, 9, 1, 2], 9), [3, 4, 9, 1, 2]);
        assert_eq!(following(&[5, 1, 2, 3, 8, 1, 2, 4, 5, 1, 2], 1), [3], "a longer run before");
        assert_eq!(following(&[1, 2, 3, 8, 1, 2, 4, 1, 2], 1), [4], "of equals the last");
        assert_eq!(following(&[7, 7, 7, 7], 4), [7], "up to the end of what is known");
        for nothing in [&[][..], &[1], &[1, 1], &[1, 2, 3], &[2, 1, 3, 1]] {
            assert!(following(nothing, 4).is_empty());
        }
        assert!(following(&[1, 2, 3, 1, 2], 0).is_empty());
    }

    #[test]
    fn wrong_guesses_end_soon_and_right_ones_grow() {
        let text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2];
        for price in [0, 1, 8, 64, 80] {
            let mut lookup = Lookup::new();
            for _ in 0..1_000 {
                let guessed = lookup.guess(&text, 100, price).len();
                lookup.learn(guessed, 0, price);
            }
            let wasted = i64::from(lookup.guessed * price);
            assert!(wasted <= FIRST + 1_000 * INCOME, "{wasted}");
            assert_eq!(lookup.right, 0);
        }
        let mut lookup = Lookup::new();
        for _ in 0..4 {
            let guessed = lookup.guess(&text, 100, 16).len();
            lookup.learn(guessed, guessed, 16);
        }
        assert_eq!(lookup.guess(&text, 100, 16).len(), MOST);
        assert_eq!(lookup.guess(&text, 3, 16).len(), 3);
    }

    #[test]
    fn where_a_row_costs_what_a_step_does_right_guesses_do_not_pay_either() {
        let text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2];
        let price = 2 * STEP_PRICE;
        let mut lookup = Lookup::new();
        for _ in 0..1_000 {
            let guessed = lookup.guess(&text, 100, price).len();
            lookup.learn(guessed, guessed, price);
        }
        let lost = i64::from(lookup.guessed) * STEP;
        assert!(lookup.guessed > 0 && lost <= FIRST + 1_000 * INCOME, "{lost}");
    }
}
