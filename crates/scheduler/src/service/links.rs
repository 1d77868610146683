//! A node can be in a crew only if others know the key of its links. Machines say it when they join. Tabs fetch the code for
//! crews when they are first asked for, so whoever could keep parts of a split service is asked for the key ahead of
//! that.

use alloc::vec::Vec;
use shoal_protocol::{Footprint, JobId, Needs, ToNode};

use super::replica::may_serve;
use crate::state::Scheduler;

impl Scheduler {
    /// Each connection is asked once.
    pub(super) fn ask_for_links(&mut self, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        if of.plan.is_none() {
            return;
        }
        let takes = Footprint { memory: 0, ..of.spec.needs.takes };
        let needs = Needs { takes, ..of.spec.needs.clone() };
        let able = self.peers.values().filter(|peer| {
            let unknown = peer.links.is_none() && !peer.must_link && !peer.silent;
            unknown && may_serve(service, of, &needs, peer)
        });
        let asked: Vec<_> = able.map(|peer| (peer.node, peer.conn)).collect();
        for (node, conn) in asked {
            if let Some(peer) = self.peers.get_mut(&node) {
                peer.must_link = true;
            }
            self.send(conn, ToNode::Link);
        }
    }
}
