//! Jobs somebody waits for go to the submitter's own device first, then to the nodes that answer soonest.

use alloc::vec::Vec;
use shoal_protocol::{JobId, Micros, NodeId, Priority, Time};

use crate::state::{Conn, Scheduler};

/// What a node is thought to be away before it was measured.
const FAR: Micros = Micros::from_secs(1);

impl Scheduler {
    /// The last measurement counts half, so that one lucky packet does not make a neighbour.
    pub(crate) fn timed(&mut self, conn: Conn, took: Micros) {
        let node = self.peers.on(conn);
        let Some(peer) = node.and_then(|node| self.peers.get_mut(&node)) else { return };
        let before = peer.round_trip.unwrap_or(took);
        peer.round_trip = Some(Micros(before.0 / 2 + took.0 / 2));
    }

    /// Lends what a new interactive job has, nearest nodes first.
    pub(crate) fn feed_nearest(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.spec.policy.priority != Priority::Interactive {
            return;
        }
        let home = job.spec.policy.home;
        let hungry = self.peers.hungry(job.spec.needs.lane).iter();
        let mut order: Vec<(bool, Micros, NodeId)> = hungry
            .filter_map(|node| {
                let peer = self.peers.get(node).filter(|peer| peer.suits(job))?;
                Some((Some(*node) != home, peer.round_trip.unwrap_or(FAR), *node))
            })
            .collect();
        order.sort_unstable();
        for (_, _, node) in order {
            if !self.jobs.get(&id).is_some_and(|job| job.has_work()) {
                return;
            }
            self.feed(now, node);
        }
    }
}
