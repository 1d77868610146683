//! Races: a request that should be answered soon, and is not when its budget nears its end, is asked of a second node.
//! Who says the first bytes of an answer has won; the other is told to stop, and what it says counts for nothing.
//!
//! What goes through a crew is raced by one node that keeps all of the service: it stands in for the crew while requests
//! with a budget come, because a spare that takes the place of a lost member has to load its parts first.

use shoal_protocol::{Attempt, JobId, Micros, NodeId, Time};

use super::call::{By, CallId};
use super::replica::mean;
use super::{MAX_TRIES, Service};
use crate::state::Scheduler;

/// Of a budget, the part that whoever is asked first has for itself: half, or every request of a slow service would be
/// computed twice.
const ALONE: u64 = 2;
/// So long after a request with a budget another one is thought to come: frames come many times in a second.
pub(super) const HURRIED_FOR: Micros = Micros::from_secs(60);

impl Service {
    /// How long one node is waited for, of this budget: as long as another could still answer as usual.
    pub(super) fn patience(&self, budget: Micros) -> Micros {
        let least = budget.0 / ALONE;
        let usual = self.usual.map_or(budget.0, |usual| usual.0);
        Micros(budget.0.saturating_sub(usual).max(least))
    }

    /// Whether requests with a budget come.
    pub(super) fn is_hurried(&self, now: Time) -> bool {
        now < self.hurried
    }

    /// Whether this node is the one to fall back to, and not to be drawn into a crew.
    pub(super) fn stands_in(&self, now: Time, node: NodeId) -> bool {
        let wanted = self.is_hurried(now) || self.proofs.is_wanted(now);
        wanted && self.replicas.get(&node).is_some_and(|it| it.stands_in)
    }

    /// A node answered after this time.
    pub(super) fn note_took(&mut self, took: Micros) {
        self.usual = Some(mean(self.usual, took));
    }
}

impl Scheduler {
    /// Requests whose time has come are asked of a second node.
    pub(super) fn begin_races(&mut self, now: Time) {
        while let Some(&(time, id)) = self.services.races.first()
            && time <= now
        {
            self.services.races.remove(&(time, id));
            if let Some(call) = self.services.calls.get_mut(&id) {
                call.race_at = None;
            }
            self.race(id);
        }
    }

    /// Beside a crew, one node keeps all of the service ready while requests with a budget come, if one has room.
    pub(super) fn keep_stand_in(&mut self, now: Time, service: JobId) {
        self.drop_useless(now, service);
        let Some(of) = self.services.services.get(&service) else { return };
        if !of.replicas.is_empty() {
            return;
        }
        let visible = |node: &NodeId| self.peers.get(node).is_some_and(|it| it.condition.visible);
        let Some(node) = self.candidate(now, service, of).filter(visible) else { return };
        self.take_on(now, service, node);
        let of = self.services.services.get_mut(&service);
        if let Some(replica) = of.and_then(|of| of.replicas.get_mut(&node)) {
            replica.stands_in = true;
        }
    }

    /// Only where a node is free that nobody waits for. Requests that wait themselves are not raced, nor answers that
    /// have begun.
    fn race(&mut self, id: CallId) {
        let Some(call) = self.services.calls.get(&id) else { return };
        let first = match call.at.map(|at| at.by) {
            None => return,
            Some(By::Node(first)) => Some(first),
            Some(By::Crew) => None,
        };
        let Some(of) = self.services.services.get(&call.service) else { return };
        if call.given > 0 || call.tries >= MAX_TRIES || of.waiting() > 0 {
            return;
        }
        let mut but = call.failed_on.clone();
        but.extend(first);
        let Some(second) = self.freest(of, &but).filter(|node| !but.contains(node)) else { return };
        let service = call.service;
        self.hand_to(id, service, second);
    }

    /// One of two that were asked failed or left: the other goes on alone. Says whether there is another.
    pub(super) fn falls_out(&mut self, id: CallId, attempt: Attempt) -> bool {
        let Some(call) = self.services.calls.get_mut(&id) else { return false };
        let (Some(first), Some(rival)) = (call.at, call.rival) else { return false };
        let (gone, stays) = match attempt {
            _ if first.attempt == attempt => (first, rival),
            _ if rival.attempt == attempt => (rival, first),
            _ => return false,
        };
        (call.at, call.rival) = (Some(stays), None);
        if let By::Node(node) = gone.by {
            call.failed_on.push(node);
        }
        let service = call.service;
        self.stop_asked(service, gone.by, gone.attempt);
        true
    }

    /// One of two began to answer: the other stops.
    pub(super) fn won(&mut self, id: CallId, attempt: Attempt) {
        let Some(call) = self.services.calls.get_mut(&id) else { return };
        let (Some(first), Some(rival)) = (call.at, call.rival) else { return };
        let (wins, stops) = if rival.attempt == attempt { (rival, first) } else { (first, rival) };
        (call.at, call.rival) = (Some(wins), None);
        let service = call.service;
        self.stop_asked(service, stops.by, stops.attempt);
        self.hand_out(service);
    }
}
