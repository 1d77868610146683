//! Who gets which unit. Nodes pull: a node that speaks and has room is fed at once, so nobody scans all
//! nodes for each unit; those that could do more wait in `hungry` until work appears.
//!
//! - [`fit`]: which job, how many items, how far ahead
//! - [`means`]: memory and threads, which units never take more of than a node lends
//! - [`lease`]: lending, taking back
//! - [`fail`]: units that fail
//! - [`quarantine`]: units that somebody lost, and who may try them
//! - [`verdict`]: whether those fail their job
//! - [`skip`]: items that fail alone, while their job goes on
//! - [`speculate`]: a second copy where the first is late
//! - [`review`]: what nobody's message brings about
//! - [`conduct`]: nodes that do not keep what they take
//! - [`condition`]: signals before a loss
//! - [`adopt`]: units a returning node still has
//! - [`consent`]: whose work a donor does not do
//! - [`crew`]: nodes that compute together
//! - [`near`]: jobs somebody waits for
//! - [`roll`]: who could compute a job that is dealt evenly

mod adopt;
mod condition;
mod conduct;
mod consent;
pub(crate) mod crew;
mod fail;
mod fit;
mod lease;
mod means;
mod near;
mod quarantine;
mod review;
pub(crate) mod roll;
mod skip;
mod speculate;
mod verdict;

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_BATCH;
use shoal_protocol::{Lane, NodeId, PerLane, Strategy, Time, ToNode};

use crate::state::Scheduler;

pub(crate) use conduct::Conducts;
pub(crate) use fit::Cut;
pub(crate) use means::Claims;
pub(crate) use quarantine::{How, Loss, Rank};
pub(crate) use review::Review;

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
        if !leases.is_empty()
            && let Some(conn) = self.conn_of(node)
        {
            self.send(conn, ToNode::Lend(leases));
        }
    }

    /// Work appeared: asks those who had none, in turn, until it is gone or nobody seems to want it.
    pub(crate) fn feed_hungry(&mut self, now: Time) {
        for lane in Lane::ALL {
            let (mut misses, mut left) = (0, self.peers.hungry(lane).len());
            while left > 0 && misses < MISSES && self.has_work_for(lane) {
                let Some(node) = self.peers.next_hungry(lane) else { break };
                let before = self.numbers.attempts();
                self.feed(now, node);
                misses = if self.numbers.attempts() == before { misses + 1 } else { 0 };
                left -= 1;
            }
        }
    }

    /// A round-robin job holds fast nodes back until the slow have had their turn, so after each answer
    /// the others may go on.
    pub(crate) fn feed_those_in_turn(&mut self, now: Time, node: NodeId) {
        let job = self.peers.get(&node).and_then(|peer| peer.last_job);
        let turns = |spec: &shoal_kinds::JobSpec| spec.strategy == Strategy::RoundRobin;
        if job.and_then(|job| self.spec(job)).is_some_and(turns) {
            self.feed_hungry(now);
        }
    }

    fn has_work_for(&self, lane: Lane) -> bool {
        self.jobs.ready_jobs().any(|job| job.spec.needs.lane == lane)
    }

    /// A node is hungry in every lane where it could compute more than it holds.
    fn note_hunger(&mut self, node: NodeId) {
        let Some(peer) = self.peers.get(&node) else { return };
        let width = self.width(peer);
        let hungry = PerLane::from_fn(|lane| {
            let slots = width.slots(peer, lane);
            let room = slots > 0 && peer.load(lane).units < slots + usize::from(width.ahead);
            room && peer.may_work()
        });
        self.peers.set_hungry(node, hungry);
    }
}
