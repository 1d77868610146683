//! Who gets which unit. Nodes pull: a node that speaks and has room is fed at once, so nobody scans all
//! nodes for each unit; those that could do more wait in `hungry` until work appears.
//!
//! - [`fit`]: which job, how many items, how far ahead
//! - [`lease`]: lending, taking back, giving up
//! - [`peer`]: joining, leaving, silence

mod fit;
mod lease;
mod peer;

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_BATCH;
use shoal_protocol::{Lane, NodeId, Strategy, Time, ToNode};

use crate::state::Scheduler;

const LANES: [Lane; 3] = [Lane::Inline, Lane::Gpu, Lane::Cpu];

impl Scheduler {
    /// Lends a node all it has room for.
    pub(crate) fn feed(&mut self, now: Time, node: NodeId) {
        let mut leases = Vec::new();
        while leases.len() < MAX_BATCH {
            let Some(unit) = self.choose(node) else { break };
            leases.push(self.lend(now, node, unit));
        }
        self.note_hunger(node);
        let Some(peer) = self.peers.get(&node) else { return };
        if !leases.is_empty() {
            self.send(peer.conn, ToNode::Lend(leases));
        }
    }

    /// Work appeared: asks those who had none, until it is gone.
    pub(crate) fn feed_hungry(&mut self, now: Time) {
        for lane in LANES {
            let mut asked = core::mem::take(&mut self.hungry[lane as usize]);
            while self.has_work_for(lane) {
                let Some(node) = asked.pop_first() else { break };
                self.feed(now, node);
            }
            self.hungry[lane as usize].append(&mut asked);
        }
    }

    /// A round-robin job holds fast nodes back until the slow have had their turn, so after each answer
    /// the others may go on.
    pub(crate) fn feed_those_in_turn(&mut self, now: Time, node: NodeId) {
        let job = self.peers.get(&node).and_then(|peer| peer.last_job);
        let turns = |spec: &shoal_protocol::JobSpec| spec.strategy == Strategy::RoundRobin;
        if job.and_then(|job| self.spec(job)).is_some_and(turns) {
            self.feed_hungry(now);
        }
    }

    fn has_work_for(&self, lane: Lane) -> bool {
        let mut jobs = self.ready.iter().filter_map(|(_, id)| self.jobs.get(id));
        jobs.any(|job| job.spec.needs.lane == lane)
    }

    /// A node is hungry in every lane where it could compute more than it holds.
    fn note_hunger(&mut self, node: NodeId) {
        let Some(peer) = self.peers.get(&node) else { return };
        for lane in LANES {
            let slots = usize::from(peer.caps.slots(lane));
            let room = slots > 0 && peer.lanes[lane as usize].units <= slots;
            if room && !peer.paused && !peer.silent {
                self.hungry[lane as usize].insert(node);
            } else {
                self.hungry[lane as usize].remove(&node);
            }
        }
    }
}
