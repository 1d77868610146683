//! Who keeps which parts of a service, and calling them together.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::crew::Pace;
use shoal_kinds::{CrewProblem, Split};
use shoal_protocol::limit::{MAX_CREWS_PER_NODE, MAX_MEMBERS};
use shoal_protocol::{
    CrewTask, Enlist, Epoch, Footprint, JobId, Micros, Needs, NodeId, StageTask, Time, ToNode,
};

use super::{Crew, Seat};
use crate::Output;
use crate::assign::crew::place::{Candidate, Measured, Placement, place};
use crate::fact::Fact;
use crate::peers::Peer;
use crate::service::Service;
use crate::service::replica::may_serve;
use crate::state::Scheduler;

/// Work in a second for each point of a node's declared speed, before any node was measured: it says which of two
/// nodes is thought to be faster, and little else.
const FIRST_GUESS: u64 = 20_000_000;
/// Claims up to so many times the lowest are taken for the same: they are guesses of strangers about themselves, and a
/// cut that follows them is lopsided more often than it is right. What was measured counts as it is.
const ALIKE: u64 = 2;
/// Before a node was measured.
const USUAL_ROUND_TRIP: Micros = Micros::from_millis(2);

impl Scheduler {
    /// Keeps a crew ready where the service is to be split. Says whether it has one: then nobody else needs to keep
    /// all of it.
    pub(in crate::service) fn keep_crew(&mut self, now: Time, service: JobId) -> bool {
        self.mend_crew(now, service);
        let Some(of) = self.services.services.get(&service) else { return false };
        if of.plan.is_none() {
            return false;
        }
        if of.crew.is_none() {
            let Some(placed) = self.place_crew(now, service, of) else { return false };
            self.call_crew(now, service, &placed);
        }
        let Some(of) = self.services.services.get(&service) else { return false };
        if !of.crew.as_ref().is_some_and(Crew::is_ready) {
            return true;
        }
        if of.is_hurried(now) {
            self.keep_stand_in(now, service);
            return true;
        }
        if of.proofs.is_wanted(now) {
            return true;
        }
        // They stood in for it.
        let idle = of.replicas.iter().filter(|(_, replica)| replica.calls == 0);
        let idle: Vec<_> = idle.map(|(node, _)| *node).collect();
        for node in idle {
            self.dismiss_replica(service, node);
        }
        true
    }

    /// The crew that should have the service, if one should.
    pub(super) fn place_crew(&self, now: Time, service: JobId, of: &Service) -> Option<Placement> {
        let plan = of.plan.as_ref()?;
        match of.spec.split {
            Split::Never => None,
            Split::Exactly(members) => self.best_crew(now, service, of, &plan.problem, members),
            Split::Auto if !of.replicas.is_empty() => None,
            Split::Auto => {
                // What one request takes counts here, not how many go through in a second.
                let problem = in_turn(&plan.problem);
                let best = self.best_crew(now, service, of, &problem, 0);
                if self.candidate(now, service, of).is_some() {
                    if now < of.alone_until {
                        return None;
                    }
                    let sooner = |best: &Placement| best.alone.is_none_or(|it| best.step < it);
                    return best.filter(|best| best.shares.len() > 1 && sooner(best));
                }
                // All parts of it may fit where all of it does not.
                best.filter(|best| best.shares.len() > 1)
                    .or_else(|| self.best_crew(now, service, of, &problem, 2))
            }
        }
    }

    /// Nodes whose pages are shown first: the others are slowed.
    pub(super) fn best_crew(
        &self,
        now: Time,
        service: JobId,
        of: &Service,
        problem: &CrewProblem,
        members: u8,
    ) -> Option<Placement> {
        let all = self.crew_candidates(now, service, of);
        let shown =
            |one: &&Candidate| self.peers.get(&one.node).is_some_and(|peer| peer.condition.visible);
        let visible: Vec<_> = all.iter().filter(shown).copied().collect();
        let link = |a: NodeId, b: NodeId| of.link(a, b);
        let find = |nodes: &[Candidate]| place(problem, nodes, members.into(), &link);
        find(&visible).or_else(|| find(&all))
    }

    /// Those that could keep parts of it, and what they have left for that.
    pub(super) fn crew_candidates(
        &self,
        now: Time,
        service: JobId,
        of: &Service,
    ) -> Vec<Candidate> {
        let takes = Footprint { memory: 0, ..of.spec.needs.takes };
        let needs = Needs { takes, ..of.spec.needs.clone() };
        let able = self.peers.values().filter(|peer| {
            let fit = may_serve(service, of, &needs, peer) && !of.is_unfit(now, peer.node);
            let free = !of.stands_in(now, peer.node) && self.has_seat_left(peer.node, service);
            fit && !peer.silent && peer.links.is_some() && free
        });
        let able: Vec<_> = able.collect();
        let guesses = guesses(of, &able);
        let candidates = able.into_iter().filter_map(|peer| {
            let memory = self.room_for_parts(peer, service);
            let measured = of.rate(peer.node);
            let rate = measured.or_else(|| guesses.get(&peer.node).copied())?;
            let round_trip = peer.round_trip.unwrap_or(USUAL_ROUND_TRIP);
            // Who sits there, and lends less than that takes now, goes.
            let seat = of.crew.as_ref().and_then(|crew| crew.seat(peer.node));
            let holds = seat.is_none_or(|seat| of.seat_takes(seat.parts).memory <= memory);
            holds.then_some(Candidate { node: peer.node, rate, memory, round_trip })
        });
        let mut candidates: Vec<_> = candidates.collect();
        // The operator's own come before the claims of strangers, and whoever has parts of it before the others.
        let order = |one: &Candidate| {
            let trusted = self.peers.get(&one.node).is_some_and(|peer| peer.trusted);
            let sits = of.crew.as_ref().is_some_and(|crew| crew.has(one.node));
            Reverse((sits, trusted, one.rate))
        };
        candidates.sort_by_key(order);
        candidates.truncate(MAX_MEMBERS);
        candidates
    }

    /// Whether a node could keep all of it, if nothing else of it were there.
    pub(super) fn has_room_alone(
        &self,
        now: Time,
        service: JobId,
        of: &Service,
        peer: &Peer,
    ) -> bool {
        let takes = of.spec.needs.takes;
        let room = self.room_for_parts(peer, service);
        let may = may_serve(service, of, &of.spec.needs, peer) && !of.is_unfit(now, peer.node);
        may && !peer.silent && room >= takes.memory
    }

    fn has_seat_left(&self, node: NodeId, service: JobId) -> bool {
        let sims = self.crews.values().filter(|crew| crew.seats.iter().any(|s| s.node == node));
        let others = self.services.services.iter().filter(|(id, of)| {
            **id != service && of.crew.as_ref().is_some_and(|crew| crew.has(node))
        });
        sims.count() + others.count() < MAX_CREWS_PER_NODE
    }

    /// A new epoch begins: those who stay and have the same parts have them loaded already.
    pub(super) fn call_crew(&mut self, now: Time, service: JobId, placed: &Placement) {
        let Some(of) = self.services.services.get(&service) else { return };
        let (mut id, epoch) = (of.crew.as_ref().and_then(|crew| crew.id), Epoch(of.epoch.0 + 1));
        let stays = |node: NodeId| placed.shares.iter().any(|(other, _)| *other == node);
        let gone = of.crew.iter().flat_map(|crew| &crew.seats).map(|seat| seat.node);
        let gone: Vec<_> = gone.filter(|node| !stays(*node)).collect();
        let nodes: Vec<_> = placed.shares.iter().map(|(node, _)| *node).collect();
        let whole: Vec<_> = of.replicas.keys().copied().filter(|node| stays(*node)).collect();
        let calls = self.calls_of_old_crew(service);
        let id = *id.get_or_insert_with(|| self.numbers.next_crew());
        self.let_crew_go(service, &gone);
        let seats = placed.shares.iter();
        let seats = seats.map(|(node, parts)| Seat::new(now, *node, self.conn_of(*node), *parts));
        let crew = Crew {
            id: Some(id),
            epoch,
            seats: seats.collect(),
            since: now,
            moved: now,
            calls: 0,
            drains: false,
            predicted: placed.step,
            alone: placed.alone,
        };
        // What they were asked is asked again, but not of the crew that is no more.
        calls.iter().for_each(|call| self.let_go(*call));
        if let Some(of) = self.services.services.get_mut(&service) {
            // They had other parts.
            of.took.forget(&nodes);
            (of.crew, of.epoch) = (Some(crew), epoch);
        }
        for node in whole {
            self.dismiss_replica(service, node);
        }
        placed.shares.iter().for_each(|(node, _)| self.introduce(*node));
        self.record(Fact::ServiceCrew { service, epoch, seats: placed.shares.clone() });
        self.enlist_crew(service);
        for (node, _) in &placed.shares {
            self.make_room(now, *node);
        }
        // The first in front.
        for call in calls.into_iter().rev() {
            self.ask_again(call, String::from("its crew changed"));
        }
    }

    fn enlist_crew(&mut self, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(crew) = &of.crew else { return };
        let Some(id) = crew.id else { return };
        let members = crew.seats.iter().filter_map(|seat| self.member_info(seat.node));
        let members: Vec<_> = members.collect();
        let parts: Vec<_> = crew.seats.iter().map(|seat| seat.parts).collect();
        let routed = crew.seats.iter().filter_map(|seat| Some((seat.node, seat.conn?)));
        let routed: Vec<_> = routed.collect();
        let (epoch, rounds) = (crew.epoch, of.rounds().is_some());
        let orders = crew.seats.iter().enumerate().filter_map(|(rank, seat)| {
            let enlist = Enlist {
                crew: id,
                epoch,
                rank: rank as u8,
                members: members.clone(),
                token: Vec::new(),
                ice: Vec::new(),
                task: CrewTask::Stage(StageTask { job: service, parts: parts.clone(), rounds }),
            };
            Some((seat.conn?, of.told(service, of.seat_takes(seat.parts)), enlist))
        });
        let orders: Vec<_> = orders.collect();
        self.outputs.push_back(Output::Route { crew: id, epoch, members: routed });
        for (conn, told, enlist) in orders {
            self.send(conn, told);
            self.send(conn, ToNode::Enlist(Box::new(enlist)));
        }
    }

    /// Those members have nothing to do with the service any more.
    fn let_crew_go(&mut self, service: JobId, nodes: &[NodeId]) {
        let of = self.services.services.get(&service);
        let Some(crew) = of.and_then(|of| of.crew.as_ref()).and_then(|crew| crew.id) else {
            return;
        };
        let conns: Vec<_> = nodes.iter().filter_map(|node| self.conn_of(*node)).collect();
        for conn in conns {
            self.send(conn, ToNode::Dismiss { crew });
            self.send(conn, ToNode::Forget(service));
        }
    }

    /// There is no crew any more; what it was asked waits for others.
    pub(in crate::service) fn unsplit(&mut self, service: JobId, reason: &str) {
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(crew) = &of.crew else { return };
        let (id, epoch) = (crew.id, of.epoch);
        let nodes: Vec<_> = crew.seats.iter().map(|seat| seat.node).collect();
        let calls = self.calls_of_old_crew(service);
        self.let_crew_go(service, &nodes);
        if let Some(crew) = id {
            self.outputs.push_back(Output::Route { crew, epoch, members: Vec::new() });
        }
        calls.iter().for_each(|call| self.let_go(*call));
        if let Some(of) = self.services.services.get_mut(&service) {
            of.crew = None;
        }
        self.record(Fact::ServiceCrew { service, epoch, seats: Vec::new() });
        for call in calls.into_iter().rev() {
            self.ask_again(call, String::from(reason));
        }
    }

    /// Why there is no crew, for people: said where nobody has all of the service either.
    pub(in crate::service) fn why_no_crew(&self, now: Time, service: JobId) -> Option<String> {
        let of = self.services.services.get(&service)?;
        let plan = of.plan.as_ref().filter(|_| of.crew.is_none())?;
        let here = self.crew_candidates(now, service, of).len();
        let all = plan.problem.held_bytes(shoal_protocol::Span::new(0, plan.problem.shares()));
        let room = self.crew_candidates(now, service, of).iter().map(|one| one.memory).sum::<u64>();
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        Some(match of.spec.split {
            Split::Exactly(members) if here < usize::from(members) => {
                format!("{members} devices must share it; {here} can take part")
            }
            Split::Never | Split::Auto | Split::Exactly(_) => format!(
                "its parts take {} MiB; {here} devices can take part and lend {} MiB for it",
                mib(all),
                mib(room)
            ),
        })
    }

    /// Memory that a node has left for parts of a service, beside whatever else stays there.
    fn room_for_parts(&self, peer: &Peer, service: JobId) -> u64 {
        peer.caps.memory_room(&self.stays_besides(peer.node, service))
    }
}

impl Service {
    /// The link between two members, as they measured it.
    pub(super) fn link(&self, a: NodeId, b: NodeId) -> Option<Measured> {
        let mut links = self.crew.iter().flat_map(Crew::links);
        let (_, link) = links.find(|(node, link)| *node == a && link.with == b)?;
        let (round_trip, bytes_per_second) = (link.round_trip, link.bytes_per_second);
        Some(Measured { round_trip, bytes_per_second })
    }
}

/// How fast these nodes are thought to be: by what they claim, in the measure of those among them that were measured.
fn guesses(of: &Service, nodes: &[&Peer]) -> BTreeMap<NodeId, u64> {
    let claims = nodes.iter().map(|peer| (u64::from(peer.caps.speed.max(1)), peer.node));
    let mut claims: Vec<_> = claims.collect();
    claims.sort_unstable();
    let mut lowest = 0;
    for (claim, _) in &mut claims {
        if *claim > ALIKE * lowest {
            lowest = *claim;
        }
        *claim = lowest;
    }
    let measured = claims.iter().filter_map(|(claim, node)| Some((*claim, of.rate(*node)?)));
    let (sum, rates) = measured.fold((0u64, 0u64), |(sum, rates), (claim, rate)| {
        (sum.saturating_add(claim), rates.saturating_add(rate))
    });
    let each = rates.checked_div(sum).unwrap_or(FIRST_GUESS).max(1);
    claims.into_iter().map(|(claim, node)| (node, claim.saturating_mul(each))).collect()
}

/// The same parts, where a request goes through them alone.
pub(super) fn in_turn(problem: &CrewProblem) -> CrewProblem {
    match problem {
        CrewProblem::Chain(chain) => {
            CrewProblem::Chain(shoal_kinds::Chain { pace: Pace::InTurn, ..chain.clone() })
        }
        CrewProblem::Ring(_) | CrewProblem::Group(_) => problem.clone(),
    }
}
