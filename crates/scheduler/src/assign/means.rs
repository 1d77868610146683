//! What units take of a node while they run. A node computes as many at a time as it has slots, so what it can take
//! at once is the largest of those it holds; that stays within what its donor lends.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{
    Attempt, Caps, CrewId, Footprint, JobId, Lane, NodeId, PerLane, Time, ToNode,
};

use crate::job::Job;
use crate::peers::Peer;
use crate::state::Scheduler;

/// What the units of one lane take, each counted. Those that take nothing are not here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims(BTreeMap<Footprint, usize>);

impl Claims {
    pub(crate) fn add(&mut self, takes: Footprint) {
        if takes != Footprint::NOTHING {
            *self.0.entry(takes).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, takes: Footprint) {
        if let Some(count) = self.0.get_mut(&takes) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&takes);
            }
        }
    }

    /// The most that `slots` of them can take at once, with one more.
    fn worst(&self, slots: usize, more: Option<Footprint>) -> Footprint {
        let most = |of: fn(&Footprint) -> u64| {
            let held = self.0.iter().map(|(takes, count)| (of(takes), *count));
            let mut sizes: Vec<_> = held.chain(more.iter().map(|takes| (of(takes), 1))).collect();
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            let mut left = slots;
            sizes.into_iter().fold(0u64, |sum, (size, count)| {
                let taken = count.min(left);
                left -= taken;
                sum.saturating_add(size.saturating_mul(taken as u64))
            })
        };
        Footprint {
            memory: most(|takes| takes.memory),
            gpu_memory: most(|takes| takes.gpu_memory),
            threads: u16::try_from(most(|takes| takes.threads.into())).unwrap_or(u16::MAX),
        }
    }
}

/// The most that all lanes can take at once, with one more unit.
fn worst<'a>(
    caps: &Caps,
    claims: impl Fn(Lane) -> &'a Claims,
    more: Option<(Lane, Footprint)>,
) -> Footprint {
    Lane::ALL.into_iter().fold(Footprint::NOTHING, |sum, lane| {
        let more = more.filter(|(at, _)| *at == lane).map(|(_, takes)| takes);
        sum.and(claims(lane).worst(caps.slots(lane).into(), more))
    })
}

impl Scheduler {
    /// The most that a node's units can take at once, and what stays.
    pub(crate) fn in_use(&self, peer: &Peer) -> Footprint {
        self.in_use_besides(peer, None)
    }

    /// Whether a node has the means for one more unit of a job, whatever of the units it holds it computes at once.
    pub(crate) fn has_means(&self, peer: &Peer, job: &Job) -> bool {
        let (lane, takes) = (job.spec.needs.lane, job.spec.needs.takes);
        if takes == Footprint::NOTHING {
            return true;
        }
        let after = worst(&peer.caps, |at| &peer.load(at).claims, Some((lane, takes)));
        peer.caps.holds(&after.and(self.stays_on(peer.node, None)))
    }

    /// What stays on a node whatever units come: its seats in crews, without that in one, and the services it keeps
    /// ready.
    fn stays_on(&self, node: NodeId, besides: Option<CrewId>) -> Footprint {
        self.seats_take(node, besides, self.services_take(node))
    }

    fn seats_take(&self, node: NodeId, besides: Option<CrewId>, services: Footprint) -> Footprint {
        let crews = self.crews.iter().filter(|(id, _)| Some(**id) != besides);
        let seats = crews.flat_map(|(_, crew)| crew.seats.iter().map(move |seat| (crew, seat)));
        let mine = seats.filter(|(_, seat)| seat.node == node);
        mine.fold(services, |sum, (crew, seat)| {
            let gpu_memory = crew.plan.problem.held_bytes(seat.rows);
            sum.and(Footprint { gpu_memory, ..Footprint::NOTHING })
        })
    }

    /// The same without what it keeps of one service.
    pub(crate) fn stays_besides(&self, node: NodeId, service: JobId) -> Footprint {
        self.seats_take(node, None, self.other_services_take(node, &[service]))
    }

    /// Whether a node could keep one more service ready, if all its units went elsewhere.
    pub(crate) fn can_keep(&self, peer: &Peer, takes: Footprint) -> bool {
        let idle = takes == Footprint::NOTHING;
        idle || peer.caps.holds(&self.stays_on(peer.node, None).and(takes))
    }

    /// The same, if some services that it keeps left.
    pub(crate) fn can_keep_without(&self, peer: &Peer, takes: Footprint, gone: &[JobId]) -> bool {
        let others = self.other_services_take(peer.node, gone);
        peer.caps.holds(&self.seats_take(peer.node, None, others).and(takes))
    }

    /// Something came to stay: units go elsewhere that a node cannot compute beside it.
    pub(crate) fn make_room(&mut self, now: Time, node: NodeId) {
        let Some(peer) = self.peers.get(&node) else { return };
        let (conn, unfit) = (peer.conn, self.beyond_means(&peer.caps, node));
        if !unfit.is_empty() {
            self.send(conn, ToNode::Revoke(unfit.clone()));
            self.give_back(now, &unfit, false);
        }
    }

    /// Bytes of GPU buffers that a node has left for a seat in a crew; `None` if nobody knows.
    pub(super) fn room_for_seat(&self, peer: &Peer, crew: CrewId) -> Option<u64> {
        peer.caps.gpu_room(&self.in_use_besides(peer, Some(crew)))
    }

    fn in_use_besides(&self, peer: &Peer, crew: Option<CrewId>) -> Footprint {
        let units = worst(&peer.caps, |lane| &peer.load(lane).claims, None);
        units.and(self.stays_on(peer.node, crew))
    }

    /// Of what a node holds, units that it can no longer compute, or not beside the older ones.
    pub(super) fn beyond_means(&self, caps: &Caps, node: NodeId) -> Vec<Attempt> {
        let Some(peer) = self.peers.get(&node) else { return Vec::new() };
        let mut kept = PerLane::<Claims>::default();
        let held =
            peer.loans().iter().filter_map(|attempt| Some((attempt, self.loans.get(attempt)?)));
        let seats = self.stays_on(node, None);
        let beyond = held.filter(|(_, loan)| {
            let Some(job) = self.jobs.get(&loan.job) else { return false };
            let all = worst(caps, |lane| &kept[lane], Some((loan.lane, loan.takes)));
            let fits = caps.meets(&job.spec.needs)
                && (loan.takes == Footprint::NOTHING || caps.holds(&all.and(seats)));
            if fits {
                kept[loan.lane].add(loan.takes);
            }
            !fits
        });
        beyond.map(|(attempt, _)| *attempt).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_count_as_many_as_there_are_slots() {
        let mut claims = Claims::default();
        let of = |memory, threads| Footprint { memory, threads, ..Footprint::NOTHING };
        for takes in [of(3, 1), of(5, 0), of(3, 1), of(1, 4), Footprint::NOTHING] {
            claims.add(takes);
        }
        assert_eq!(claims.worst(0, None), Footprint::NOTHING);
        assert_eq!(claims.worst(2, None), of(8, 5));
        assert_eq!(claims.worst(9, None), of(12, 6));
        claims.remove(of(5, 0));
        assert_eq!(claims.worst(2, None), of(6, 5));
        assert_eq!(claims.worst(2, Some(of(7, 0))), of(10, 5));
    }
}
