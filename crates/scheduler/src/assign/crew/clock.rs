//! How fast strangers are by the coordinator's own clock. They say it themselves, and are believed a few times what
//! the clock has seen, because it sees less than they do: also the way there and back, memory that is made, neighbours
//! that are waited for. It sees the second audition, when everything is compiled, and every step of the crew.
//!
//! Whoever claims too much gets few rows at first. The more it does with them, the more it is believed.

use shoal_protocol::{CrewId, NodeId, Time, ToNode};

use super::{Crew, Try};
use crate::state::Scheduler;

/// Strangers are believed so many times what the clock has seen.
const BELIEVED: u64 = 4;

impl Scheduler {
    /// A node says how fast it is. The operator's own are believed; the others show it once more.
    pub(super) fn showed(&mut self, now: Time, node: NodeId, id: CrewId, rate: u64) {
        let Some(peer) = self.peers.get(&node) else { return };
        let (own, conn) = (peer.trusted, peer.conn);
        let Some(crew) = self.crews.get_mut(&id) else { return };
        match crew.tries.get(&node).copied() {
            Some(Try::Asked { .. }) if own => {}
            Some(Try::Asked { .. }) => {
                crew.tries.insert(node, Try::Again { at: now });
                let job = crew.job;
                return self.send(conn, ToNode::Audition { crew: id, job });
            }
            Some(Try::Again { at }) => {
                let seen = per_second(crew.plan.trial.into(), (now - at).0);
                crew.seen.insert(node, seen);
            }
            // Only who was asked has a say.
            Some(Try::Fit { .. } | Try::Unfit { .. }) | None => return,
        }
        crew.tries.insert(node, Try::Fit { rate });
        self.wake_crews(now);
    }
}

impl Crew {
    pub(super) fn believed(&self, node: NodeId, rate: u64) -> u64 {
        let clocked = self.clocked.get(&node).copied().unwrap_or(u64::MAX);
        let seen = self.seen.get(&node).map_or(u64::MAX, |seen| seen.saturating_mul(BELIEVED));
        rate.min(clocked).min(seen)
    }

    /// All members did so many steps since the epoch began: a stranger did its part of each.
    pub(super) fn see(&mut self, now: Time, node: NodeId) {
        let Some(seat) = self.seats.iter().find(|seat| seat.node == node) else { return };
        let steps = u128::from(self.moved.0.saturating_sub(self.began));
        let work = u128::from(self.plan.problem.work(seat.rows)) * steps;
        let did = per_second(work, (now - self.since).0);
        if let Some(seen) = self.seen.get_mut(&node) {
            *seen = did.max(*seen);
        }
    }
}

fn per_second(work: u128, micros: u64) -> u64 {
    u64::try_from(work * 1_000_000 / u128::from(micros.max(1))).unwrap_or(u64::MAX).max(1)
}
