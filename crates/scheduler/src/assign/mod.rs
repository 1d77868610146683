//! Who gets which unit. Nodes pull: a node that speaks and has room is fed at once, so nobody scans all
//! nodes for each unit; those that could do more wait in `hungry` until work appears.
//!
//! - [`fit`]: which job, how many items, how far ahead
//! - [`lease`]: lending, taking back
//! - [`fail`]: units that fail
//! - [`quarantine`]: units that somebody lost, and who may try them
//! - [`verdict`]: whether those fail their job
//! - [`speculate`]: a second copy where the first is late
//! - [`review`]: what nobody's message brings about
//! - [`conduct`]: nodes that do not keep what they take
//! - [`condition`]: signals before a loss
//! - [`adopt`]: units a returning node still has
//! - [`consent`]: whose work a donor does not do
//! - [`crew`]: nodes that compute together
//! - [`near`]: jobs somebody waits for
//! - [`peer`]: joining, leaving, silence

mod adopt;
mod condition;
mod conduct;
mod consent;
pub(crate) mod crew;
mod fail;
mod fit;
mod lease;
mod near;
mod peer;
mod quarantine;
mod review;
mod speculate;
mod verdict;

use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use shoal_protocol::limit::MAX_BATCH;
use shoal_protocol::{Lane, NodeId, Strategy, Time, ToNode};

use crate::state::Scheduler;

pub(crate) use conduct::{Absent, Conduct};
pub(crate) use quarantine::{How, Loss};

pub(crate) const LANES: [Lane; 3] = [Lane::Inline, Lane::Gpu, Lane::Cpu];
/// So many nodes in a row that cannot take what is there are asked; the next time, those after them.
const MISSES: u32 = 32;

impl Scheduler {
    /// Lends a node all it has room for.
    pub(crate) fn feed(&mut self, now: Time, node: NodeId) {
        let mut leases = Vec::new();
        while leases.len() < MAX_BATCH {
            let cut = self.choose(now, node).or_else(|| self.speculate(now, node));
            let Some(cut) = cut else { break };
            leases.push(self.lend(now, node, cut));
        }
        self.note_hunger(node);
        let Some(peer) = self.peers.get(&node) else { return };
        if !leases.is_empty() {
            self.send(peer.conn, ToNode::Lend(leases));
        }
    }

    /// Work appeared: asks those who had none, in turn, until it is gone or nobody seems to want it.
    pub(crate) fn feed_hungry(&mut self, now: Time) {
        for lane in LANES {
            let (mut misses, mut left) = (0, self.hungry[lane as usize].len());
            while left > 0 && misses < MISSES && self.has_work_for(lane) {
                let Some(node) = self.next_hungry(lane) else { break };
                let before = self.last_attempt;
                self.feed(now, node);
                misses = if self.last_attempt == before { misses + 1 } else { 0 };
                left -= 1;
            }
        }
    }

    /// Goes round those that could compute more.
    pub(crate) fn next_hungry(&mut self, lane: Lane) -> Option<NodeId> {
        let hungry = &self.hungry[lane as usize];
        let last = &mut self.asked[lane as usize];
        let after = last.map_or(Unbounded, Excluded);
        let next = hungry.range((after, Unbounded)).next().or_else(|| hungry.first());
        *last = next.copied();
        *last
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
        let mut jobs = self.ready.iter().filter_map(|turn| self.jobs.get(&turn.job));
        jobs.any(|job| job.spec.needs.lane == lane)
    }

    /// A node is hungry in every lane where it could compute more than it holds.
    fn note_hunger(&mut self, node: NodeId) {
        let Some(peer) = self.peers.get(&node) else { return };
        for lane in LANES {
            let (slots, ahead) = self.width(peer, lane);
            let room = slots > 0 && peer.lanes[lane as usize].units < slots + usize::from(ahead);
            if room && !peer.paused && !peer.silent && peer.rests_until.is_none() {
                self.hungry[lane as usize].insert(node);
            } else {
                self.hungry[lane as usize].remove(&node);
            }
        }
    }
}
