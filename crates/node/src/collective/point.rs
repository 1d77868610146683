//! Words from one rank to another: whoever comes first, sender or receiver, waits for the other.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use shoal_protocol::Time;

use super::topology::Rank;
use super::wait::MESSAGE_COST;

#[derive(Default)]
pub(super) struct Points {
    /// What came and nobody waited for, by sender and label.
    came: BTreeMap<(Rank, u32), VecDeque<Vec<u8>>>,
    awaited: BTreeMap<(Rank, u32), Wait>,
    kept: usize,
}

/// Only while nothing of that sender and label is kept.
struct Wait {
    receives: u32,
    since: Time,
    told: bool,
}

impl Points {
    /// The oldest that came and nobody took. If there is none, it is awaited from now on.
    pub(super) fn receive(&mut self, now: Time, from: Rank, label: u32) -> Option<Vec<u8>> {
        let Some(came) = self.came.get_mut(&(from, label)) else {
            let new = Wait { receives: 0, since: now, told: false };
            self.awaited.entry((from, label)).or_insert(new).receives += 1;
            return None;
        };
        let bytes = came.pop_front()?;
        if came.is_empty() {
            self.came.remove(&(from, label));
        }
        self.kept -= bytes.len() + MESSAGE_COST;
        Some(bytes)
    }

    /// Something came: whether it was awaited.
    pub(super) fn meet(&mut self, now: Time, from: Rank, label: u32) -> bool {
        let Some(wait) = self.awaited.get_mut(&(from, label)) else { return false };
        (wait.receives, wait.since, wait.told) = (wait.receives - 1, now, false);
        if wait.receives == 0 {
            self.awaited.remove(&(from, label));
        }
        true
    }

    /// Keeps what nobody waits for yet.
    pub(super) fn keep(&mut self, from: Rank, label: u32, bytes: Vec<u8>) {
        self.kept += bytes.len() + MESSAGE_COST;
        self.came.entry((from, label)).or_default().push_back(bytes);
    }

    /// Since when each is awaited, and whether somebody was told.
    pub(super) fn waits(&self) -> impl Iterator<Item = (Time, bool)> {
        self.awaited.values().map(|wait| (wait.since, wait.told))
    }

    pub(super) fn waits_mut(&mut self) -> impl Iterator<Item = (Rank, Time, &mut bool)> {
        let waits = self.awaited.iter_mut();
        waits.map(|((rank, _), wait)| (*rank, wait.since, &mut wait.told))
    }

    pub(super) fn kept(&self) -> usize {
        self.kept
    }
}
