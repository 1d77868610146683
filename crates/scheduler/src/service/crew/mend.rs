//! Members that leave, hide, fall silent, stall, fail or cheat. Another takes the place of such a one and the rest
//! stay as they are; where nobody can, all are placed anew; where that cannot be either, there is no crew, and one
//! node keeps all of the service, if it can.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::Split;
use shoal_protocol::{JobId, Micros, NodeId, Time};

use super::Crew;
use crate::assign::crew::place::{Placement, refill};
use crate::service::Service;
use crate::service::call::CallId;
use crate::service::replica::{MAX_FAULTS, UNFIT_FOR};
use crate::state::Scheduler;

/// A member is heard twice a second; so long a silence is a stuck device.
const SILENT: Micros = Micros::from_secs(3);
/// Nothing in this time, and in twenty times what a stage takes, is a stall.
const STALLED: Micros = Micros::from_secs(5);
/// Whatever a stage takes, nobody waits longer for one.
const LONGEST: Micros = Micros::from_secs(600);
/// A device that had to do something else may soon be back.
const RESTS_FOR: Micros = Micros::from_secs(10);
/// After a start whoever was in a crew may come back before others take its place: so long before everybody is
/// thought to be here. Most are back within three seconds.
const BACK_BEFORE: Micros = Micros::from_secs(9);
/// Members fetch and load their parts in this time, or others are looked for.
const LOAD_WITHIN: Micros = Micros::from_secs(60);

/// What is wrong with a crew.
enum Ill {
    /// A member that is no more: gone, paused, without memory for its parts.
    Lost(NodeId),
    /// One that gets no place for so long.
    Out(NodeId, Micros, &'static str),
    /// One that others could do better.
    Better(NodeId, &'static str),
    /// What was asked got lost, and it is nobody's fault.
    Asleep,
}

impl Scheduler {
    pub(super) fn mend_crew(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(crew) = &of.crew else { return };
        if crew.id.is_none() {
            return self.call_back(now, service);
        }
        match self.ill(now, service, of, crew) {
            None => self.recut_crew(now, service),
            Some(Ill::Lost(node)) => {
                self.reform(now, service, &format!("node {node} is no longer there"));
            }
            Some(Ill::Out(node, rests, what)) => {
                self.leave_seat_out(now, service, node, rests);
                self.reform(now, service, &format!("node {node} {what}"));
            }
            Some(Ill::Better(node, what)) => {
                let others = self.crew_candidates(now, service, of);
                let others = others.into_iter().filter(|one| {
                    let peer = self.peers.get(&one.node);
                    one.node != node && peer.is_some_and(|peer| peer.condition.visible)
                });
                let others: Vec<_> = others.collect();
                let plan = of.plan.as_ref();
                let placed =
                    plan.and_then(|plan| refill(plan, &crew.shares(), &others, crew.predicted));
                if let Some(placed) = placed {
                    if what == LATE {
                        self.leave_seat_out(now, service, node, UNFIT_FOR);
                    }
                    self.call_crew(now, service, &placed);
                }
            }
            Some(Ill::Asleep) => {
                if let Some(crew) = self.crew_mut(service) {
                    crew.moved = now;
                }
                for call in self.calls_of_old_crew(service) {
                    self.ask_again(call, String::from("it was lost on its way"));
                }
            }
        }
    }

    fn ill(&self, now: Time, service: JobId, of: &Service, crew: &Crew) -> Option<Ill> {
        let able = self.crew_candidates(now, service, of);
        let lost = crew.seats.iter().find(|seat| {
            let here = able.iter().any(|one| one.node == seat.node);
            !here || self.conn_of(seat.node) != seat.conn
        });
        if let Some(seat) = lost {
            return Some(Ill::Lost(seat.node));
        }
        if let Some(seat) = crew.seats.iter().find(|seat| now > seat.heard + SILENT) {
            return Some(Ill::Out(seat.node, RESTS_FOR, "fell silent"));
        }
        if crew.calls > 0 && now > crew.moved + patience(of, crew) {
            // Those behind it have nothing, those before it cannot pass on what they have.
            let stuck = crew.seats.iter().rev().find(|seat| seat.report.held > 0);
            let stuck = stuck.map(|seat| Ill::Out(seat.node, RESTS_FOR, "stalled the others"));
            return Some(stuck.unwrap_or(Ill::Asleep));
        }
        let late = crew.seats.iter().find(|seat| !seat.ready && now > crew.since + LOAD_WITHIN);
        if let Some(seat) = late {
            return Some(Ill::Better(seat.node, LATE));
        }
        let hidden = crew
            .seats
            .iter()
            .find(|seat| self.peers.get(&seat.node).is_some_and(|peer| !peer.condition.visible));
        hidden.map(|seat| Ill::Better(seat.node, "hides"))
    }

    /// After a start: the same members as before have their parts on their disks. Those who do not come back are
    /// replaced.
    fn call_back(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(crew) = &of.crew else { return };
        let able = self.crew_candidates(now, service, of);
        let here = crew.seats.iter().all(|seat| able.iter().any(|one| one.node == seat.node));
        if here {
            let (shares, step, alone) = (crew.shares(), crew.predicted, crew.alone);
            self.call_crew(now, service, &Placement { shares, step, alone, apart: false });
        } else if self.conducts.is_settled(now + BACK_BEFORE) {
            self.reform(now, service, "not all came back");
        }
    }

    fn leave_seat_out(&mut self, now: Time, service: JobId, node: NodeId, rests: Micros) {
        if let Some(of) = self.services.services.get_mut(&service) {
            of.unfit.insert(node, now + rests);
        }
    }

    /// A member cannot go on, or must not.
    pub(super) fn seat_out(&mut self, now: Time, service: JobId, node: NodeId, what: &str) {
        self.leave_seat_out(now, service, node, UNFIT_FOR);
        if let Some(of) = self.services.services.get_mut(&service) {
            of.trouble = Some(String::from(what));
        }
        self.reform(now, service, what);
    }

    /// Some of the crew gave a wrong answer: others take their places.
    pub(in crate::service) fn crew_lied(
        &mut self,
        now: Time,
        service: JobId,
        nodes: &[NodeId],
        what: &str,
    ) {
        let of = self.services.services.get(&service);
        let crew = of.and_then(|of| of.crew.as_ref());
        if crew.is_some_and(|crew| nodes.iter().any(|node| crew.has(*node))) {
            self.reform(now, service, what);
        }
    }

    /// A member failed a request by its own fault. One that does so again and again makes way for another, if there is
    /// one.
    pub(in crate::service) fn seat_erred(
        &mut self,
        now: Time,
        service: JobId,
        node: NodeId,
        reason: &str,
    ) {
        let Some(seat) = self.crew_mut(service).and_then(|crew| crew.seat_mut(node)) else {
            return;
        };
        seat.faults += 1;
        let often = seat.faults >= MAX_FAULTS;
        let Some(of) = self.services.services.get(&service).filter(|_| often) else { return };
        let (Some(crew), Some(plan)) = (&of.crew, &of.plan) else { return };
        let others = self.crew_candidates(now, service, of).into_iter();
        let others: Vec<_> = others.filter(|one| one.node != node).collect();
        let spare = refill(plan, &crew.shares(), &others, crew.predicted).is_some();
        let whole = || self.candidate(now, service, of).is_some_and(|other| other != node);
        if spare || whole() {
            self.seat_out(now, service, node, &format!("node {node}: {reason}"));
        } else if let Some(seat) = self.crew_mut(service).and_then(|crew| crew.seat_mut(node)) {
            seat.faults = 0;
        }
    }

    /// A new epoch with those who can: in the places of those who cannot there are others, or all are placed anew.
    fn reform(&mut self, now: Time, service: JobId, reason: &str) {
        let Some(of) = self.services.services.get(&service) else { return };
        let (Some(crew), Some(plan)) = (&of.crew, &of.plan) else { return };
        let able = self.crew_candidates(now, service, of);
        let kept = refill(plan, &crew.shares(), &able, crew.predicted);
        let kept = kept.map(|placed| Placement { alone: crew.alone, ..placed });
        // Whoever keeps all of it is no worse than a crew that was only formed because nobody could.
        let placed = kept.or_else(|| match of.spec.split {
            Split::Auto if self.candidate(now, service, of).is_some() => None,
            Split::Never | Split::Auto | Split::Exactly(_) => self.place_crew(now, service, of),
        });
        match placed {
            Some(placed) => self.call_crew(now, service, &placed),
            None => self.unsplit(service, reason),
        }
        self.services.due = Some(now);
    }

    /// A donor lends less than this node's parts take: others have them, or nobody.
    pub(in crate::service) fn crew_shrinks(&mut self, node: NodeId) {
        let services = self.services.services.iter();
        let its = services.filter(|(_, of)| of.crew_takes(node).is_some());
        let its: Vec<_> = its.map(|(id, _)| *id).collect();
        for service in its.into_iter().rev() {
            let holds =
                self.peers.get(&node).is_none_or(|peer| peer.caps.holds(&self.services_take(node)));
            if !holds {
                let now = self.now;
                self.leave_seat_out(now, service, node, UNFIT_FOR);
                self.reform(now, service, "its device lends less");
            }
        }
    }

    pub(in crate::service) fn crew_mut(&mut self, service: JobId) -> Option<&mut Crew> {
        self.services.services.get_mut(&service)?.crew.as_mut()
    }

    /// What a crew that is no more has to be asked again. What one node was asked as well goes on there alone.
    pub(super) fn calls_of_old_crew(&mut self, service: JobId) -> Vec<CallId> {
        let calls = self.services.calls.iter();
        let its = calls.filter(|(_, call)| call.service == service && call.is_in_crew());
        let its = its.filter_map(|(id, call)| Some((*id, call.at?.attempt)));
        let mut its: Vec<_> = its.collect();
        its.retain(|(id, attempt)| !self.falls_out(*id, *attempt));
        its.into_iter().map(|(id, _)| id).collect()
    }
}

const LATE: &str = "does not get ready";

/// How long nothing may be done while requests are at work.
fn patience(of: &Service, crew: &Crew) -> Micros {
    let paces: Option<Vec<_>> = crew.seats.iter().map(super::Seat::pace).collect();
    match paces.and_then(|paces| paces.into_iter().max()) {
        Some(slowest) => Micros(slowest.0.saturating_mul(20).clamp(STALLED.0, LONGEST.0)),
        None => STALLED.max(of.spec.limits.time).min(LONGEST),
    }
}
