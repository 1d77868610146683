//! Room for services. A node keeps no more ready than its donor lends memory for. Where a service is needed that would fit
//! but for others which nobody asks, the one that was not asked for longest leaves first. It comes back when it is
//! asked, or when there is room.

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::{ServiceSpec, Split};
use shoal_protocol::{Footprint, JobId, Needs, NodeId, Time};

use crate::peers::Peer;
use crate::state::Scheduler;
use crate::submit::SubmitError;

impl Scheduler {
    /// Has others leave a node, so that this service fits there, and names the node. Only what is asked for or is new
    /// drives others out: otherwise two that do not fit together would drive each other out for ever.
    pub(super) fn clear_room(&mut self, now: Time, service: JobId) -> Option<NodeId> {
        let of = self.services.services.get(&service)?;
        let is_new = !of.was_kept && of.crew.is_none();
        if !of.replicas.is_empty() || of.waiting() == 0 && !is_new {
            return None;
        }
        // One that nodes fail at drives nobody out: it would do so on one node after the other, and again.
        if of.unfit.values().any(|until| *until > now) {
            return None;
        }
        let takes = of.spec.needs.takes;
        let able = self.peers.values().filter(|peer| self.may_take_on(now, service, of, peer));
        let found = able.filter_map(|peer| {
            let leave = self.who_leaves(peer, takes)?;
            let newest = leave.last().map(|(used, _)| *used);
            // Who was asked least lately leaves, whichever of equally good nodes it is on.
            let order = (peer.condition.visible, peer.trusted, Reverse(newest), Reverse(peer.node));
            Some((order, peer.node, leave))
        });
        let (_, node, leave) = found.max_by_key(|(order, ..)| *order)?;
        for (_, other) in leave {
            self.dismiss_replica(other, node);
        }
        Some(node)
    }

    /// Which services that nobody asks would have to leave a node, the longest unused first, and when each was last
    /// used. None if that does not help.
    fn who_leaves(&self, peer: &Peer, takes: Footprint) -> Option<Vec<(Time, JobId)>> {
        let services = self.services.services.iter();
        let idle = services.filter(|(_, of)| of.waiting() == 0).filter_map(|(id, of)| {
            let replica = of.replicas.get(&peer.node)?;
            (replica.is_ready() && replica.calls == 0).then_some((replica.used, *id))
        });
        let mut idle: Vec<_> = idle.collect();
        idle.sort();
        let fits = |count: usize| {
            let gone: Vec<_> = idle.iter().take(count).map(|(_, id)| *id).collect();
            self.can_keep_without(peer, takes, &gone)
        };
        let count = (1..=idle.len()).find(|count| fits(*count))?;
        idle.truncate(count);
        Some(idle)
    }

    /// Why no node that is here could keep it ready whole, however much left. Nothing is known while none is here that
    /// could but for the memory.
    pub(super) fn too_large(&self, spec: &ServiceSpec) -> Option<SubmitError> {
        let whole = match spec.split {
            Split::Never => spec.needs.takes.memory,
            Split::Auto | Split::Exactly(_) => return None,
        };
        let takes = Footprint { memory: 0, ..spec.needs.takes };
        let needs = Needs { takes, ..spec.needs.clone() };
        let able = self.peers.values().filter(|peer| {
            let may = peer.trusted || spec.strangers && !peer.is_barred(needs.lane);
            may && peer.caps.meets(&needs)
        });
        let most = able.map(|peer| peer.caps.memory).max()?;
        (most < whole).then_some(SubmitError::TooLarge { takes: whole, most })
    }
}
