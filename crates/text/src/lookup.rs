//! Guessing the next tokens of an answer from what was asked and said: where the same tokens stood before, the same ones
//! may follow. A guess costs a row in a step that is computed anyway, and a right one saves a step. Whether it is right
//! is decided by choosing as without it, so that the words are the same. Before anything is spent, guesses are only
//! thought, and what is said shows what they are worth: where a text does not repeat itself, they cost nothing.

use alloc::vec::Vec;

use crate::vocabulary::Token;

/// Tokens guessed at a time: more are seldom all right, and each row costs.
const MOST: usize = 8;
/// The same where one costs at most this, because most of a step's time goes for something else, such as slow links.
const MOST_CHEAP: usize = 16;
const CHEAP: u32 = STEP_PRICE / 32;
/// Tokens that must have stood there before: one says little.
const LEAST_SAME: usize = 2;
/// More tokens that are the same do not make a guess better.
const MOST_SAME: usize = 6;

/// What a step costs that computes one token. Prices of rows are in the same measure.
pub const STEP_PRICE: u32 = 64;
const STEP: i64 = STEP_PRICE as i64;
/// For each token said. Guesses cost no more than this part of the time, and what was given at the beginning.
const INCOME: i64 = 1;
const FIRST: i64 = STEP / 2;
/// What right guesses save is not kept for ever: a text may change.
const RICHEST: i64 = 4 * STEP;
/// How good guesses seem is forgotten beyond this, for the same reason.
const MOST_HOPE: i64 = 2 * STEP;
/// With less nothing is spent: a run of two that comes again is found in any text.
const LEAST_HOPE: i64 = STEP + STEP / 2;

/// What one answer may spend on guesses, and whether it is worth it.
#[derive(Debug)]
pub(crate) struct Lookup {
    credit: i64,
    /// What guesses lately brought beyond their cost, those included that were only thought. Nothing is spent before
    /// there is some.
    hope: i64,
    /// As many as seemed worth it lately.
    length: usize,
    /// A guess that is only thought: what is said shows whether it would have been right.
    thought: Vec<Token>,
    /// So many of its tokens were said, and each would have cost this.
    met: usize,
    price: u32,
    /// Guessed so far, and those among them that were right.
    pub(crate) guessed: u32,
    pub(crate) right: u32,
}

impl Lookup {
    pub(crate) fn new() -> Lookup {
        Lookup {
            credit: FIRST,
            hope: 0,
            length: MOST / 2,
            thought: Vec::new(),
            met: 0,
            price: 0,
            guessed: 0,
            right: 0,
        }
    }

    /// What may follow these tokens, at most so many, where each costs so much. While there is no hope, a guess is only
    /// thought.
    pub(crate) fn guess<'a>(
        &mut self,
        tokens: &'a [Token],
        most: usize,
        price: u32,
    ) -> &'a [Token] {
        let affordable = usize::try_from(self.credit / i64::from(price.max(1))).unwrap_or(0);
        let paid = if self.hope > LEAST_HOPE { most.min(affordable) } else { 0 };
        if paid > 0 {
            self.thought.clear();
            let length = if price <= CHEAP { MOST_CHEAP } else { self.length };
            return following(tokens, paid.min(length));
        }
        if self.thought.is_empty() {
            self.thought = following(tokens, most.min(self.length)).to_vec();
            (self.met, self.price) = (0, price);
        }
        &[]
    }

    /// So many were guessed, which cost so much, and so many of them were right.
    pub(crate) fn learn(&mut self, guessed: usize, right: usize, cost: u32) {
        self.guessed += guessed as u32;
        self.right += right as u32;
        let gain = right as i64 * STEP - i64::from(cost);
        self.credit = (self.credit + INCOME + gain).clamp(0, RICHEST);
        if guessed > 0 {
            self.found(guessed, right, gain);
        }
    }

    /// A token was said where nothing was guessed.
    pub(crate) fn said(&mut self, token: Token) {
        let Some(thought) = self.thought.get(self.met) else { return };
        let is_right = *thought == token;
        self.met += usize::from(is_right);
        let length = self.thought.len();
        if is_right && self.met < length {
            return;
        }
        let gain = self.met as i64 * STEP - length as i64 * i64::from(self.price);
        self.found(length, self.met, gain);
        self.thought.clear();
    }

    fn found(&mut self, guessed: usize, right: usize, gain: i64) {
        self.hope = (self.hope + gain).clamp(-MOST_HOPE, MOST_HOPE);
        self.length = if right == guessed { 2 * guessed } else { right + 1 }.clamp(2, MOST);
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

    const TEXT: [Token; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2];

    /// A lookup that has seen a thought come true.
    fn hopeful() -> Lookup {
        let mut lookup = Lookup::new();
        assert!(lookup.guess(&TEXT, 100, 8).is_empty(), "nothing is spent on nothing");
        (3..7).for_each(|token| lookup.said(token));
        assert!(lookup.hope > LEAST_HOPE);
        lookup
    }

    #[test]
    fn nothing_is_spent_while_thoughts_are_wrong() {
        let mut lookup = Lookup::new();
        for _ in 0..1_000 {
            assert!(lookup.guess(&TEXT, 100, 8).is_empty());
            lookup.learn(0, 0, 0);
            lookup.said(9);
        }
        assert_eq!((lookup.guessed, lookup.hope), (0, -MOST_HOPE));
        // A few that are right are not enough then, more are.
        let mut rounds = 0;
        while lookup.guess(&TEXT, 100, 8).is_empty() {
            (3..11).for_each(|token| lookup.said(token));
            rounds += 1;
        }
        assert!((1..4).contains(&rounds), "{rounds}");
    }

    #[test]
    fn wrong_guesses_end_soon_and_right_ones_grow() {
        for price in [1, 8, 64, 80] {
            let (mut lookup, mut wasted) = (hopeful(), 0);
            for _ in 0..1_000 {
                let guessed = lookup.guess(&TEXT, 100, price).len();
                lookup.learn(guessed, 0, guessed as u32 * price);
                wasted += i64::from(guessed as u32 * price);
                if guessed == 0 {
                    lookup.said(9);
                }
            }
            assert!(wasted <= MOST_HOPE, "{wasted}");
            assert_eq!(lookup.right, 0);
        }
        let mut lookup = hopeful();
        for _ in 0..4 {
            let guessed = lookup.guess(&TEXT, 100, 16).len();
            lookup.learn(guessed, guessed, guessed as u32 * 16);
        }
        assert_eq!(lookup.guess(&TEXT, 100, 16).len(), MOST);
        assert_eq!(lookup.guess(&TEXT, 3, 16).len(), 3);
        // Where rows cost next to nothing, all that may follow is guessed.
        assert_eq!(hopeful().guess(&TEXT, 100, CHEAP).len(), 10);
        assert_eq!(hopeful().guess(&TEXT, 100, CHEAP + 1).len(), MOST);
    }

    #[test]
    fn whatever_hopes_promise_no_more_is_spent_than_was_given() {
        let (mut lookup, mut lost) = (hopeful(), 0);
        for _ in 0..1_000 {
            // Thoughts come true, guesses never do.
            let guessed = lookup.guess(&TEXT, 100, 16).len();
            lookup.learn(guessed, 0, guessed as u32 * 16);
            lost += guessed as i64 * 16;
            if guessed == 0 {
                (3..11).for_each(|token| lookup.said(token));
            }
        }
        assert!(lost > 0 && lost <= FIRST + 1_000 * INCOME, "{lost}");
    }

    #[test]
    fn where_a_row_costs_what_a_step_does_right_guesses_do_not_pay_either() {
        let price = 2 * STEP_PRICE;
        let (mut lookup, mut lost) = (hopeful(), 0);
        for _ in 0..1_000 {
            let guessed = lookup.guess(&TEXT, 100, price).len();
            lookup.learn(guessed, guessed, guessed as u32 * price);
            lost += guessed as i64 * STEP;
            if guessed == 0 {
                (3..11).for_each(|token| lookup.said(token));
            }
        }
        assert!(lost <= MOST_HOPE, "{lost}");
    }
}
