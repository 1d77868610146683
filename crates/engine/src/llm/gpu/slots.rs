//! Which sequence has which place in the GPU's caches, and how many positions. A position that does not follow is refused:
//! an answer from a cache with a hole would be fluent and wrong.

use std::collections::BTreeMap;

use crate::llm::error::RunError;

pub(super) struct Slots {
    most_positions: u32,
    free: Vec<u32>,
    most: usize,
    held: BTreeMap<u64, Held>,
}

#[derive(Clone, Copy)]
struct Held {
    slot: u32,
    length: u32,
}

impl Slots {
    pub(super) fn new(most: usize, most_positions: u32) -> Slots {
        let free = (0..most as u32).rev().collect();
        Slots { most_positions, free, most, held: BTreeMap::new() }
    }

    /// Sequences that have a place, at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn length(&self, sequence: u64) -> u32 {
        self.held.get(&sequence).map_or(0, |held| held.length)
    }

    /// Whether these positions follow, row by row; nothing changes.
    pub(super) fn check(&self, rows: impl Iterator<Item = (u64, u32)>) -> Result<(), RunError> {
        let mut lengths: BTreeMap<u64, u32> = BTreeMap::new();
        for (sequence, position) in rows {
            let length = lengths.entry(sequence).or_insert_with(|| self.length(sequence));
            if *length != position {
                return Err(RunError::Hole { sequence, length: *length, position });
            }
            if position >= self.most_positions {
                return Err(RunError::Context { sequence, most: self.most_positions });
            }
            *length += 1;
        }
        let fresh = lengths.keys().filter(|it| !self.held.contains_key(it)).count();
        if fresh > self.free.len() {
            return Err(RunError::Sequences { most: self.most });
        }
        Ok(())
    }

    /// Takes a position that was checked; gives the sequence's slot.
    pub(super) fn take(&mut self, sequence: u64, position: u32) -> u32 {
        let free = &mut self.free;
        let fresh = || Held { slot: free.pop().unwrap_or(0), length: 0 };
        let held = self.held.entry(sequence).or_insert_with(fresh);
        held.length = position + 1;
        held.slot
    }

    /// Forgets all positions from here on. Longer than it is, is refused.
    pub(super) fn truncate(&mut self, sequence: u64, length: u32) -> Result<(), RunError> {
        let held = self.length(sequence);
        if length > held {
            return Err(RunError::Hole { sequence, length: held, position: length });
        }
        if length == 0 {
            self.forget(sequence);
        } else if let Some(held) = self.held.get_mut(&sequence) {
            held.length = length;
        }
        Ok(())
    }

    pub(super) fn forget(&mut self, sequence: u64) {
        self.free.extend(self.held.remove(&sequence).map(|held| held.slot));
    }

    /// A new sequence that begins as another one does; gives both slots.
    pub(super) fn copy(&mut self, from: u64, to: u64, length: u32) -> Result<[u32; 2], RunError> {
        let held = self.held.get(&from).copied().filter(|held| (1..=held.length).contains(&length));
        let Some(held) = held else {
            let position = length;
            return Err(RunError::Hole { sequence: from, length: self.length(from), position });
        };
        if self.held.contains_key(&to) {
            let length = self.length(to);
            return Err(RunError::Hole { sequence: to, length, position: 0 });
        }
        let slot = self.free.pop().ok_or(RunError::Sequences { most: self.most })?;
        self.held.insert(to, Held { slot, length });
        Ok([held.slot, slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_do_not_follow_are_refused_and_places_come_back() {
        let mut slots = Slots::new(2, 4);
        let put = |slots: &mut Slots, rows: &[(u64, u32)]| {
            slots.check(rows.iter().copied())?;
            Ok(rows.iter().map(|(sequence, at)| slots.take(*sequence, *at)).collect::<Vec<_>>())
        };
        assert_eq!(put(&mut slots, &[(7, 0), (7, 1), (8, 0)]), Ok(vec![0, 0, 1]));
        let hole = RunError::Hole { sequence: 7, length: 2, position: 3 };
        assert_eq!(put(&mut slots, &[(7, 3)]), Err(hole));
        assert_eq!(put(&mut slots, &[(9, 0)]), Err(RunError::Sequences { most: 2 }));
        assert_eq!(slots.copy(7, 9, 2), Err(RunError::Sequences { most: 2 }));
        slots.forget(8);
        assert!(slots.copy(7, 9, 3).is_err());
        assert_eq!(slots.copy(7, 9, 2), Ok([0, 1]));
        assert_eq!(put(&mut slots, &[(9, 2), (9, 3)]), Ok(vec![1, 1]));
        assert_eq!(put(&mut slots, &[(9, 4)]), Err(RunError::Context { sequence: 9, most: 4 }));
        assert!(slots.truncate(7, 3).is_err());
        assert_eq!((slots.truncate(9, 0), slots.length(9)), (Ok(()), 0));
        assert_eq!(put(&mut slots, &[(5, 0)]), Ok(vec![1]));
    }
}
