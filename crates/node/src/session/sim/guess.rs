//! Going on with guessed halos where true ones are late, one step deep. What comes of a guess is told to
//! nobody before the truth is there: then it is true itself, or taken back and made again.

use alloc::vec::Vec;
use shoal_protocol::{Micros, Time};

use super::halo::Side;
use super::{Phase, Sim};
use crate::session::command::SimCommand;

/// A halo is late after this many usual waits.
const LATE: u64 = 2;
/// And never before: a step that is guessed sooner costs more than it saves.
const LEAST_LATE: Micros = Micros::from_millis(2);

#[derive(Default)]
pub(super) struct Guess {
    /// What the step in hand was made with, by side, where the truth is not known yet.
    sides: [Option<Vec<u8>>; 2],
    /// Steps taken back before the engine was done with them: their edges are yet to come and mean nothing.
    stale: u32,
    /// This step was guessed once and wrongly; that is enough.
    spent: bool,
    /// Guessed halos that were true, and that were not.
    pub(super) right: u64,
    pub(super) wrong: u64,
}

impl Guess {
    pub(super) fn is_settled(&self) -> bool {
        self.sides.iter().all(Option::is_none)
    }

    pub(super) fn take_stale(&mut self) -> bool {
        let stale = self.stale > 0;
        self.stale = self.stale.saturating_sub(1);
        stale
    }

    /// For the next step.
    pub(super) fn renew(&mut self) {
        self.spent = false;
    }

    pub(super) fn give_up(&mut self) {
        self.sides = [None, None];
    }
}

impl Sim {
    /// When missing halos count as late.
    pub(super) fn guess_at(&self) -> Option<Time> {
        let may = self.task.speculate && !self.guess.spent && !self.keep_due;
        if !may || !matches!(self.phase, Phase::Waiting) || !self.halos.can_guess() {
            return None;
        }
        let wait = Micros(self.pace.usual()?.0.saturating_mul(LATE)).max(LEAST_LATE);
        self.halos.missing(self.step).next().map(|_| self.pace.since() + wait)
    }

    pub(super) fn make_guess(&mut self, now: Time) {
        let [above, below] = Side::BOTH.map(|side| {
            let true_one = self.halos.of(side, self.step).cloned();
            let guess = true_one.is_none().then(|| self.halos.guess(side, self.floats)).flatten();
            self.guess.sides[side as usize].clone_from(&guess);
            true_one.or(guess).unwrap_or_default()
        });
        self.make(now, above, below);
    }

    /// Compares what was guessed with what came.
    pub(super) fn settle(&mut self, now: Time) {
        if self.guess.is_settled() {
            return;
        }
        for side in Side::BOTH {
            let Some(guess) = &self.guess.sides[side as usize] else { continue };
            let Some(true_one) = self.halos.of(side, self.step) else { continue };
            if guess != true_one {
                return self.take_back();
            }
            self.guess.sides[side as usize] = None;
            self.guess.right += 1;
        }
        if self.guess.is_settled() {
            self.pace.arrived(now);
            Side::BOTH.into_iter().for_each(|side| drop(self.halos.take(side, self.step)));
        }
    }

    fn take_back(&mut self) {
        self.guess.give_up();
        self.guess.wrong += 1;
        self.guess.spent = true;
        if matches!(self.phase, Phase::Stepping) {
            self.guess.stale += 1;
        }
        self.phase = Phase::Waiting;
        self.command(SimCommand::Back { epoch: self.place.epoch });
    }
}
