//! Pokes over the field, each for one step. Rank 0 says for which; the others hear of it with the halos,
//! in time: word goes on by one rank a step, and a poke is for a step farther away than there are ranks.
//! Those of an earlier epoch everybody knows from the start: the coordinator gave them with the task.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{CrewSay, Poke};

use super::{Sim, SimOutput};
use crate::collective::Rank;

/// Pokes that wait for their step, one a step. More come only from a hand that is faster than the simulation;
/// its pokes overlap, so that those beyond are not missed.
pub(super) const MAX_POKES: usize = 16;
/// Pokes a rank knows of: also those that rank 0 is past already and this one is not.
pub(super) const MAX_KNOWN: usize = MAX_POKES + MAX_MEMBERS;
/// Of one poke in a message.
pub(super) const POKE_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct Pokes {
    by_step: BTreeMap<u64, Poke>,
    /// Of an earlier epoch; told to nobody.
    given: BTreeMap<u64, Poke>,
}

impl Sim {
    /// Rank 0 chooses the step, and the coordinator hears of it before it comes.
    pub(super) fn poked(&mut self, poke: Poke) {
        if self.place.rank == Rank(0) {
            let step = self.pokes.add(self.next_told(), self.place.ranks, self.steps, poke);
            self.outputs.push_back(SimOutput::Says(CrewSay::Poked { poke, step }));
        }
    }
}

impl Pokes {
    pub(super) fn new(given: &[(u64, Poke)]) -> Pokes {
        Pokes { by_step: BTreeMap::new(), given: given.iter().copied().collect() }
    }

    /// At rank 0: for the first free step that all ranks hear of in time, if that is one of `steps`. `next` is
    /// the step of the next edges to be told.
    pub(super) fn add(&mut self, next: u64, ranks: u8, steps: u64, poke: Poke) -> Option<u64> {
        if self.by_step.len() >= MAX_POKES {
            return None;
        }
        let after = self.by_step.last_key_value().map_or(0, |(last, _)| last + 1);
        let mut free = after.max(next + u64::from(ranks))..steps;
        let step = free.find(|step| !self.given.contains_key(step))?;
        self.by_step.insert(step, poke);
        Some(step)
    }

    /// From a neighbour whose halo is of step `at`. The first word of a step counts: all honest ones are equal.
    /// The error is the step that rank 0 cannot have chosen.
    pub(super) fn hear(
        &mut self,
        at: u64,
        ranks: u8,
        mine: u64,
        heard: Vec<(u64, Poke)>,
    ) -> Result<(), u64> {
        // Rank 0 is at most as many steps ahead of that neighbour as there are ranks, and leaves out those that
        // are taken.
        let waiting = (MAX_POKES + self.given.len()) as u64;
        let last = at.saturating_add(2 * u64::from(ranks) + waiting + 1);
        for (step, poke) in heard {
            if step < at || step > last {
                return Err(step);
            }
            let room = self.by_step.len() < MAX_KNOWN;
            if step >= mine && room {
                self.by_step.entry(step).or_insert(poke);
            }
        }
        Ok(())
    }

    pub(super) fn of(&self, step: u64) -> Option<Poke> {
        self.given.get(&step).or_else(|| self.by_step.get(&step)).copied()
    }

    /// Those that still matter and the neighbours may not know.
    pub(super) fn to_tell(&self) -> Vec<(u64, Poke)> {
        self.by_step.iter().map(|(step, poke)| (*step, *poke)).collect()
    }

    /// This step's are the next.
    pub(super) fn forget_before(&mut self, step: u64) {
        self.by_step = self.by_step.split_off(&step);
        self.given = self.given.split_off(&step);
    }
}
