//! Donors choose for whom their devices work; their nodes say for which jobs they do not.

use alloc::vec::Vec;
use shoal_protocol::{JobId, NodeId, Time};

use crate::state::Scheduler;

impl Scheduler {
    pub(crate) fn declined(&mut self, now: Time, node: NodeId, id: JobId, declined: bool) {
        if self.service_declined(node, id, declined) || !self.jobs.is_running(id) {
            return;
        }
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if !declined {
            peer.declined.remove(&id);
            self.call_roll(node);
            return;
        }
        if !peer.declined.insert(id) {
            return;
        }
        self.call_roll(node);
        let Some(peer) = self.peers.get(&node) else { return };
        let held = peer.loans().iter().copied();
        let job = |attempt: &_| self.loans.get(attempt).is_some_and(|loan| loan.job == id);
        let held: Vec<_> = held.filter(job).collect();
        self.give_back(now, &held, false);
        self.feed_hungry(now);
    }

    /// How many nodes that could compute a job do not want to.
    pub(crate) fn decliners(&self, id: JobId) -> usize {
        self.peers.values().filter(|peer| peer.declined.contains(&id)).count()
    }
}
