//! Who keeps all of a service ready: as many nodes as requests need, between the least and the most.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_protocol::{Failure, Footprint, JobId, Micros, Needs, NodeId, Time, ToNode};

use super::Service;
use crate::fact::Fact;
use crate::peers::Peer;
use crate::state::Scheduler;

/// A node that could not make a service ready is not asked again for so long.
pub(super) const UNFIT_FOR: Micros = Micros::from_secs(30);

/// A node makes a service ready in this time, or another is asked beside it: it may have to fetch a large program first.
const WARM_WITHIN: Micros = Micros::from_secs(20);

/// A replica that fails so many requests in a row by its own fault makes way for another. One may be bad luck; with
/// two, a request that has only met this node has a try left for the next.
pub(super) const MAX_FAULTS: u32 = 2;

/// A service on one node.
pub(super) struct Replica {
    state: State,
    /// Requests it works on.
    pub(super) calls: usize,
    /// When it last had something to do.
    pub(super) used: Time,
    /// Requests in a row that it failed by its own fault.
    pub(super) faults: u32,
    /// How long it takes to answer, with the way there and back, on average over its last answers.
    took: Option<Micros>,
    /// It was made ready beside a crew, for when that does not answer in time.
    pub(super) stands_in: bool,
}

/// After so long without a request, a device counts as twice as fast as it was: one that is eight times slower than the
/// best is tried every minute and a half.
const FADES: Micros = Micros::from_secs(30);
/// By then it counts as one of which nothing is known.
const MOST_FADED: u64 = 32;

/// Of times that came one after the other: the last counts a quarter.
pub(super) fn mean(before: Option<Micros>, took: Micros) -> Micros {
    Micros(before.map_or(took.0, |mean| (mean.0.saturating_mul(3).saturating_add(took.0)) / 4))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its node is not here: the coordinator has just started.
    Absent,
    /// Told to make it ready.
    Warming,
    Ready,
}

impl Replica {
    pub(super) fn absent() -> Replica {
        let (state, used, took) = (State::Absent, Time(0), None);
        Replica { state, calls: 0, used, faults: 0, took, stands_in: false }
    }

    /// It answered after this time.
    pub(super) fn note_took(&mut self, took: Micros) {
        self.took = Some(mean(self.took, took));
    }

    /// When it would answer another request, with so many slots and requests at work on its node: all of them share the
    /// device. One that has answered nothing yet is tried at once. What was learned fades while it is not asked, so that
    /// whoever was slow by accident is tried again.
    pub(super) fn expected(&self, now: Time, slots: usize, running: usize) -> Micros {
        let rested = if self.calls > 0 { Micros(0) } else { now - self.used };
        let faded = (rested.0 / FADES.0).min(MOST_FADED);
        let took = self.took.map_or(0, |took| took.0 >> faded);
        let (slots, running) = (slots.max(1) as u64, running as u64);
        Micros(took.saturating_mul(slots + running) / slots)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether it should have been ready by now.
    pub(super) fn is_late(&self, now: Time) -> bool {
        self.state == State::Warming && now > self.used + WARM_WITHIN
    }
}

impl Service {
    /// What a node is told that is to keep it ready, or parts of it.
    pub(super) fn told(&self, service: JobId, takes: Footprint) -> ToNode {
        let spec = &self.spec;
        ToNode::Job {
            job: service,
            name: spec.name.clone(),
            owner: spec.owner.clone(),
            items: 0,
            work: Box::new(spec.work.work()),
            limits: spec.limits,
            signed: spec.signed,
            takes,
        }
    }
}

impl Scheduler {
    /// A node answered that it is ready, or why it is not.
    pub(crate) fn replica_warmed(
        &mut self,
        node: NodeId,
        service: JobId,
        result: Result<(), Failure>,
    ) {
        let now = self.now;
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(replica) = of.replicas.get_mut(&node) else { return };
        match result {
            Ok(()) => {
                (replica.state, replica.used) = (State::Ready, now);
                of.trouble = None;
                self.hand_out(service);
            }
            Err(failure) => {
                of.trouble = Some(failure.to_string());
                of.unfit.insert(node, now + UNFIT_FOR);
                self.dismiss_replica(service, node);
            }
        }
        self.services.due = Some(now);
    }

    /// A replica failed a request by its own fault. One that does so again and again gets no more and makes way for
    /// another, if there is one; what else it works on it may end.
    pub(super) fn replica_erred(&mut self, service: JobId, node: NodeId, reason: &str) {
        let now = self.now;
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(replica) = of.replicas.get_mut(&node) else { return };
        replica.faults += 1;
        let often = replica.faults >= MAX_FAULTS;
        let Some(of) = self.services.services.get(&service).filter(|_| often) else { return };
        let mut others = of.replicas.keys().filter(|other| **other != node);
        let replaced = others.any(|other| self.is_good(now, service, of, *other))
            || self.candidate(now, service, of).is_some();
        let Some(of) = self.services.services.get_mut(&service).filter(|_| replaced) else {
            return;
        };
        of.trouble = Some(reason.into());
        of.unfit.insert(node, now + UNFIT_FOR);
        if let Some(replica) = of.replicas.get_mut(&node) {
            replica.faults = 0;
        }
        self.services.due = Some(now);
    }

    /// A donor does not serve whoever stands for a service, or does again. Says whether it is one.
    pub(crate) fn service_declined(
        &mut self,
        node: NodeId,
        service: JobId,
        declined: bool,
    ) -> bool {
        if !self.services.services.contains_key(&service) {
            return false;
        }
        if let Some(peer) = self.peers.get_mut(&node) {
            let declines = &mut peer.declined;
            let _ = if declined { declines.insert(service) } else { declines.remove(&service) };
        }
        self.services.due = Some(self.now);
        true
    }

    /// A node is here: what it keeps ready by the facts, it is told again.
    pub(crate) fn replicas_come_back(&mut self, node: NodeId) {
        let services = self.services.services.iter();
        let its = services.filter(|(_, of)| of.replicas.contains_key(&node));
        let its: Vec<_> = its.map(|(id, _)| *id).collect();
        for service in its {
            let of = self.services.services.get(&service);
            let takes = of.map_or(Footprint::NOTHING, |of| of.spec.needs.takes);
            if self.peers.get(&node).is_some_and(|peer| self.can_keep(peer, takes)) {
                self.warm_replica(service, node);
            } else {
                self.dismiss_replica(service, node);
            }
        }
        if !self.services.services.is_empty() {
            self.services.due = Some(self.now);
        }
    }

    /// What the services take that a node keeps ready, or is making ready.
    pub(crate) fn services_take(&self, node: NodeId) -> Footprint {
        let services = self.services.services.values();
        let kept = services.filter(|of| {
            of.replicas.get(&node).is_some_and(|replica| replica.state != State::Absent)
        });
        let whole = kept.fold(Footprint::NOTHING, |sum, of| sum.and(of.spec.needs.takes));
        let services = self.services.services.values();
        let parts = services.filter_map(|of| of.crew_takes(node));
        parts.fold(whole, Footprint::and)
    }

    /// The same without some of them.
    pub(crate) fn other_services_take(&self, node: NodeId, but: &[JobId]) -> Footprint {
        let others = self.services.services.iter().filter(|(id, _)| !but.contains(id));
        others.fold(Footprint::NOTHING, |sum, (_, of)| {
            let kept = |replica: &&Replica| replica.state != State::Absent;
            let whole = of.replicas.get(&node).filter(kept).map(|_| of.spec.needs.takes);
            whole.into_iter().chain(of.crew_takes(node)).fold(sum, Footprint::and)
        })
    }

    /// The donor lends less: services go elsewhere until the rest fits, those first that nobody asked for longest.
    pub(crate) fn replicas_shrink(&mut self, node: NodeId) {
        let services = self.services.services.iter();
        let kept = services.filter_map(|(id, of)| Some((*id, of.replicas.get(&node)?)));
        let kept = kept.filter(|(_, replica)| replica.state != State::Absent);
        let mut kept: Vec<_> =
            kept.map(|(id, replica)| (replica.calls > 0, replica.used, id)).collect();
        kept.sort();
        for (_, _, service) in kept {
            if self.peers.get(&node).is_none_or(|peer| peer.caps.holds(&self.services_take(node))) {
                break;
            }
            self.dismiss_replica(service, node);
            self.services.due = Some(self.now);
        }
        self.crew_shrinks(node);
    }

    /// A node is gone, with all it kept ready. Crews are mended before anything else is done.
    pub(crate) fn replicas_leave(&mut self, node: NodeId) {
        self.calls_lost(node);
        if !self.services.services.is_empty() {
            self.services.due = Some(self.now);
        }
        let services = self.services.services.iter();
        let its = services.filter(|(_, of)| of.replicas.contains_key(&node));
        let its: Vec<_> = its.map(|(id, _)| *id).collect();
        for service in its {
            self.dismiss_replica(service, node);
            self.services.due = Some(self.now);
        }
    }

    /// More replicas where requests wait, fewer where none came for long, others where nodes hide, pause or do not
    /// get ready.
    pub(super) fn place_replicas(&mut self, now: Time, service: JobId) {
        self.note_unready(now, service);
        self.ask_for_links(service);
        if self.keep_crew(now, service) {
            return;
        }
        self.drop_useless(now, service);
        let Some(of) = self.services.services.get(&service) else { return };
        let (least, most) = (usize::from(of.spec.least), usize::from(of.spec.most));
        let mut replicas = of.replicas.values();
        let opening = replicas.any(|it| it.state == State::Warming && !it.is_late(now));
        let more = usize::from(of.waiting() > 0 && !opening);
        let enough = |have: usize| (have + more).clamp(least, most) <= have;
        let nodes = || of.replicas.keys();
        if enough(nodes().filter(|node| self.is_good(now, service, of, **node)).count()) {
            return;
        }
        let Some(node) = self.candidate(now, service, of).or_else(|| self.clear_room(now, service))
        else {
            self.note_homeless(now, service);
            return;
        };
        let Some(of) = self.services.services.get(&service) else { return };
        let nodes = || of.replicas.keys();
        // A hidden page does no better than those that are hidden already.
        if self.peers.get(&node).is_some_and(|peer| !peer.condition.visible)
            && enough(nodes().filter(|node| self.is_fit(now, service, of, **node)).count())
        {
            return;
        }
        // One more than allowed for a moment: one that moves.
        if of.replicas.len() > most {
            let late = of.replicas.iter().filter(|(_, replica)| replica.is_late(now));
            let longest = late.min_by_key(|(_, replica)| replica.used).map(|(node, _)| *node);
            let Some(longest) = longest else { return };
            self.give_up_replica(now, service, longest);
        }
        self.take_on(now, service, node);
    }

    /// Says why nobody keeps it ready, if that is known.
    fn note_homeless(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        if !of.replicas.is_empty() {
            return;
        }
        let why = self.why_no_crew(now, service);
        let why = why.or_else(|| self.too_large(&of.spec).map(|error| error.to_string()));
        if let (Some(why), Some(of)) = (why, self.services.services.get_mut(&service)) {
            of.trouble.get_or_insert(why);
        }
    }

    /// Forgets who may be asked again, and says who takes long.
    fn note_unready(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.unfit.retain(|_, until| *until > now);
        let mut replicas = of.replicas.iter();
        if let Some((node, _)) = replicas.find(|(_, replica)| replica.is_late(now)) {
            let seconds = WARM_WITHIN.0 / 1_000_000;
            let reason = format!("node {node} did not get ready within {seconds} s");
            of.trouble.get_or_insert(reason);
        }
    }

    pub(super) fn drop_useless(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        // One at a time, because each makes the others needed more.
        let Some(node) = self.useless(now, service, of) else { return };
        match of.replicas.get(&node).is_some_and(|replica| replica.is_late(now)) {
            true => self.give_up_replica(now, service, node),
            false => self.dismiss_replica(service, node),
        }
    }

    /// A node does not get ready: it is not asked again at once.
    fn give_up_replica(&mut self, now: Time, service: JobId, node: NodeId) {
        if let Some(of) = self.services.services.get_mut(&service) {
            of.unfit.insert(node, now + UNFIT_FOR);
        }
        self.dismiss_replica(service, node);
    }

    fn useless(&self, now: Time, service: JobId, of: &Service) -> Option<NodeId> {
        let settled = self.conducts.is_settled(now);
        let good = of
            .replicas
            .iter()
            .filter(|(node, replica)| replica.is_ready() && self.is_good(now, service, of, **node));
        let good = good.count();
        let (least, most) = (usize::from(of.spec.least), usize::from(of.spec.most));
        let enough = good >= least.max(1);
        let mut replicas = of.replicas.iter();
        let useless = replicas.find(|(node, replica)| {
            let Some(peer) = self.peers.get(node) else { return settled };
            if peer.paused || peer.declined.contains(&service) || !peer.caps.meets(&of.spec.needs) {
                return true;
            }
            // What takes long may come yet, but nobody needs it.
            if replica.is_late(now) && enough && of.waiting() == 0 {
                return true;
            }
            // A hidden page is slowed: it goes when others do its work.
            let hidden = !peer.condition.visible && enough;
            let idle = good > least && now > replica.used + of.spec.idle;
            let spare = replica.is_ready() && (idle || good > most);
            replica.calls == 0 && (hidden || spare || of.is_unfit(now, **node))
        });
        useless.map(|(node, _)| *node)
    }

    /// Whether a node can and may keep a service ready, did not just fail it, and is not late.
    fn is_fit(&self, now: Time, service: JobId, of: &Service, node: NodeId) -> bool {
        let late = of.replicas.get(&node).is_some_and(|replica| replica.is_late(now));
        let may = |peer| may_serve(service, of, &of.spec.needs, peer);
        !late && !of.is_unfit(now, node) && self.peers.get(&node).is_some_and(may)
    }

    /// Whether it is not slowed either.
    fn is_good(&self, now: Time, service: JobId, of: &Service, node: NodeId) -> bool {
        let visible = |peer: &Peer| peer.condition.visible;
        self.is_fit(now, service, of, node) && self.peers.get(&node).is_some_and(visible)
    }

    /// The node that should keep it ready next: the operator's own first, then the least loaded, then the fastest.
    pub(super) fn candidate(&self, now: Time, service: JobId, of: &Service) -> Option<NodeId> {
        let fits = self.peers.values().filter(|peer| {
            self.may_take_on(now, service, of, peer) && self.can_keep(peer, of.spec.needs.takes)
        });
        let order = |peer: &&Peer| {
            let services = self.services.services.values();
            let kept = services.filter(|other| other.replicas.contains_key(&peer.node)).count();
            (
                peer.condition.visible,
                peer.trusted,
                Reverse(kept),
                peer.caps.speed,
                Reverse(peer.node),
            )
        };
        fits.max_by_key(order).map(|peer| peer.node)
    }

    /// Whether a node that has nothing of a service could keep it ready, if it had the room.
    pub(super) fn may_take_on(&self, now: Time, service: JobId, of: &Service, peer: &Peer) -> bool {
        let rested = !of.is_unfit(now, peer.node);
        let new = !of.replicas.contains_key(&peer.node)
            && of.crew.as_ref().is_none_or(|crew| !crew.has(peer.node));
        new && rested && !peer.silent && may_serve(service, of, &of.spec.needs, peer)
    }

    pub(super) fn take_on(&mut self, now: Time, service: JobId, node: NodeId) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.unfit.remove(&node);
        of.was_kept = true;
        let replica = Replica { used: now, ..Replica::absent() };
        of.replicas.insert(node, replica);
        // A replica's node is remembered, so that it has the same number after a restart.
        self.introduce(node);
        self.record(Fact::Replica { service, node, on: true });
        self.warm_replica(service, node);
    }

    fn warm_replica(&mut self, service: JobId, node: NodeId) {
        let Some(conn) = self.conn_of(node) else { return };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        if let Some(replica) = of.replicas.get_mut(&node) {
            (replica.state, replica.used) = (State::Warming, self.now);
        }
        let told = of.told(service, of.spec.needs.takes);
        self.send(conn, told);
        self.send(conn, ToNode::Warm { job: service });
        self.make_room(self.now, node);
    }

    /// Ends a replica; its requests are asked again elsewhere.
    pub(super) fn dismiss_replica(&mut self, service: JobId, node: NodeId) {
        self.looker_leaves(service, node);
        let calls = self.services.calls.iter();
        let its = calls.filter(|(_, call)| call.service == service);
        let its: Vec<_> = its.filter_map(|(id, call)| Some((*id, call.on(node)?))).collect();
        let Some(of) = self.services.services.get_mut(&service) else { return };
        if of.replicas.remove(&node).is_none() {
            return;
        }
        self.record(Fact::Replica { service, node, on: false });
        if let Some(conn) = self.conn_of(node) {
            self.send(conn, ToNode::Forget(service));
        }
        for (id, attempt) in its {
            self.ask_again_if(id, attempt, "the node no longer serves it");
        }
    }
}

/// Whether a node can and may keep something with these needs of a service.
pub(super) fn may_serve(service: JobId, of: &Service, needs: &Needs, peer: &Peer) -> bool {
    let lane = needs.lane;
    let may = peer.trusted || of.spec.strangers && !peer.is_barred(lane);
    let declined = peer.declined.contains(&service);
    may && !peer.paused && !declined && peer.caps.meets(needs)
}
