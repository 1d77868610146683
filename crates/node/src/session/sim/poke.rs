//! Strokes over the field, each for one step. Rank 0 says for which; the others hear of it with the halos,
//! in time: word goes on by one rank a step, and a poke is for a step farther away than there are ranks.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::Poke;
use shoal_protocol::limit::MAX_MEMBERS;

/// Pokes that wait for their step, one a step. More come only from a hand that is faster than the simulation;
/// its strokes overlap, so that those beyond are not missed.
pub(super) const MAX_POKES: usize = 16;
/// Pokes a rank knows of: also those that rank 0 is past already and this one is not.
pub(super) const MAX_KNOWN: usize = MAX_POKES + MAX_MEMBERS;
/// Of one poke in a message.
pub(super) const POKE_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct Pokes {
    by_step: BTreeMap<u64, Poke>,
}

impl Pokes {
    /// At rank 0: for the first free step that all ranks hear of in time. `next` is the step of the next
    /// edges to be told.
    pub(super) fn add(&mut self, next: u64, ranks: u8, poke: Poke) {
        if self.by_step.len() < MAX_POKES {
            let free = self.by_step.last_key_value().map_or(0, |(last, _)| last + 1);
            self.by_step.insert(free.max(next + u64::from(ranks)), poke);
        }
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
        // Rank 0 is at most as many steps ahead of that neighbour as there are ranks.
        let last = at.saturating_add(2 * u64::from(ranks) + MAX_POKES as u64 + 1);
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
        self.by_step.get(&step).copied()
    }

    /// Those that still matter, for the neighbours.
    pub(super) fn to_tell(&self) -> Vec<(u64, Poke)> {
        self.by_step.iter().map(|(step, poke)| (*step, *poke)).collect()
    }

    /// This step's are the next.
    pub(super) fn forget_before(&mut self, step: u64) {
        self.by_step = self.by_step.split_off(&step);
    }
}
