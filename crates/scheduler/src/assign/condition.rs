//! Signals before a loss: a page that hides, a battery that empties, units that are handed back. What a node could
//! do before says little then, so it is thought slower at once and measured anew.

use alloc::vec::Vec;
use shoal_protocol::{Attempt, Condition, NodeId, Time};

use crate::meter::Pace;
use crate::state::Scheduler;

/// What a hidden page keeps of its speed (measured: 0.37).
const HIDDEN: (u64, u64) = (3, 8);

impl Scheduler {
    pub(crate) fn paused(&mut self, now: Time, node: NodeId, paused: bool) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        // Who says the same again changes nothing, and costs nothing.
        if core::mem::replace(&mut peer.paused, paused) == paused {
            return;
        }
        self.wake_crews_for(now, node);
        self.may_give_changed(now, node);
    }

    pub(crate) fn conditioned(&mut self, now: Time, node: NodeId, condition: Condition) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let before = core::mem::replace(&mut peer.condition, condition);
        if before == condition {
            return;
        }
        self.slow_down(now, node, before, condition);
        self.may_give_changed(now, node);
    }

    /// Units come back that were not begun. What is made up sets nothing free.
    pub(crate) fn returned(&mut self, now: Time, node: NodeId, attempts: Vec<Attempt>) {
        let ours: Vec<_> = attempts.into_iter().filter(|a| self.loans.is_held(node, *a)).collect();
        if !ours.is_empty() {
            self.note_returned(now, node, &ours);
            self.tell_again(node, &ours);
            self.give_back(now, &ours, false);
            self.feed_hungry(now);
        }
    }

    fn slow_down(&mut self, now: Time, node: NodeId, before: Condition, condition: Condition) {
        let Some(peer) = self.peers.get(&node) else { return };
        let (of, total) = match (before.visible, condition.visible) {
            (true, false) => HIDDEN,
            (false, true) => (HIDDEN.1, HIDDEN.0),
            (true, true) | (false, false) => return,
        };
        let paces: Vec<_> = peer.paces.iter().map(|(job, pace)| (*job, *pace)).collect();
        for (job, pace) in paces {
            let milli_rate = (pace.milli_rate / total).saturating_mul(of).max(1);
            let last_size = (pace.last_size / total).saturating_mul(of).max(1);
            self.set_pace(node, job, Pace { milli_rate, last_size, stale: true, ..pace });
        }
        self.put_off_loans(now, node, (total, of));
        self.review.wake();
    }
}
