//! Auditions, and calling a crew together.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_CREWS_PER_NODE, MAX_MEMBERS};
use shoal_protocol::{
    Attempt, CrewId, CrewTask, Enlist, Epoch, JobId, Micros, NodeId, SimTask, Span, Time, ToNode,
};

use super::place::{Candidate, Measured, Placement, place};
use super::{Base, Crew, LOOK_EVERY, Seat, Try};
use crate::Output;
use crate::explain::millis;
use crate::fact::Fact;
use crate::job::JobState;
use crate::peers::Peer;
use crate::state::{Conn, Scheduler};

/// A node that has not shown its speed in this time is not waited for: compiling takes seconds, not more.
const AUDITION: Micros = Micros::from_secs(15);
/// The same, once somebody else has.
const LATECOMERS: Micros = Micros::from_secs(5);
/// Its answer got lost, or its engine hangs: it is asked once more after this time.
const ASK_AGAIN: Micros = Micros::from_secs(60);
/// Others may be about to join: so long a crew waits before it is called together for the first time.
pub(crate) const GATHER: Micros = Micros::from_secs(1);
/// After a restart of the coordinator everybody comes back, one after another.
const GATHER_AGAIN: Micros = Micros::from_secs(3);
/// A checkpoint costs a transfer of the whole field: what is lost with a member is at most this much work.
const KEEP_EVERY: Micros = Micros::from_secs(5);
/// Strangers' words about themselves make crews be looked at this often at most: soon enough for people.
const WAKE_EVERY: Micros = Micros::from_millis(20);
/// Before a node was measured.
const USUAL_ROUND_TRIP: Micros = Micros::from_millis(2);

impl Scheduler {
    /// A simulation begins, or begins again in a new life of the coordinator.
    pub(crate) fn form(&mut self, now: Time, job: JobId, gather: Micros) {
        let id = self.next_crew();
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let Some(plan) = known.spec.work.crew() else { return };
        known.crews.push(id);
        let crew = Crew::new(now, job, plan, gather);
        self.crews.insert(now, id, crew);
    }

    /// Something happened that may change a crew: it is looked at before anything else is done.
    pub(crate) fn wake_crews(&mut self, now: Time) {
        self.crews.wake(now);
    }

    /// A node said something of itself that may change a crew. Its own is looked at at once; others soon, because
    /// a look asks every node, and anybody may say such things as often as it likes.
    pub(crate) fn wake_crews_for(&mut self, now: Time, node: NodeId) {
        let mut seats = self.crews.values().flat_map(|crew| &crew.seats);
        if seats.any(|seat| seat.node == node) {
            return self.wake_crews(now);
        }
        self.crews.wake_gently(now, WAKE_EVERY);
    }

    pub(crate) fn look_at_crews(&mut self, now: Time) {
        if !self.crews.begin_look(now) {
            return;
        }
        let crews: Vec<_> = self.crews.keys().copied().collect();
        for id in crews {
            self.look_at_check(now, id);
            self.mend(now, id);
            self.ask_untried(now, id);
            self.call_if_ready(now, id);
        }
        self.crews.end_look(now + LOOK_EVERY);
    }

    /// Whether a node may have a seat.
    pub(super) fn may_sit(&self, peer: &Peer, id: CrewId) -> bool {
        let Some(known) = self.crew_job(id) else { return false };
        if peer.paused || peer.silent || !peer.suits(known) {
            return false;
        }
        let crews = self.crews.iter().filter(|(other, crew)| {
            **other != id && crew.seats.iter().any(|seat| seat.node == peer.node)
        });
        crews.count() < MAX_CREWS_PER_NODE
    }

    /// Whoever was not asked, did not answer for a long time, or failed through no fault of the job's.
    fn ask_untried(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        let job = crew.job;
        let fit = crew.tries.values().filter(|tried| matches!(tried, Try::Fit { .. })).count();
        let room = (2 * MAX_MEMBERS).saturating_sub(fit);
        let is_untried = |node: &NodeId| match crew.tries.get(node) {
            None => true,
            Some(Try::Asked { at } | Try::Again { at }) => now > *at + ASK_AGAIN,
            Some(Try::Unfit { until }) => now > *until,
            Some(Try::Fit { .. }) => false,
        };
        let peers = self.peers.values();
        let untried = peers.filter(|peer| is_untried(&peer.node) && self.may_sit(peer, id));
        let untried: Vec<_> = untried.take(room).map(|peer| (peer.node, peer.conn)).collect();
        for (node, conn) in untried {
            self.tell(node, job);
            self.send(conn, ToNode::Audition { crew: id, job });
            if let Some(crew) = self.crews.get_mut(&id) {
                if crew.tries.is_empty() && crew.seats.is_empty() {
                    crew.since = now;
                }
                crew.tries.insert(node, Try::Asked { at: now });
            }
        }
    }

    fn call_if_ready(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        if !crew.seats.is_empty() {
            return;
        }
        let wanted = crew.plan.members;
        // Where somebody is ready, whoever takes its time may come in at a checkpoint.
        let ready = crew.tries.values().any(|tried| matches!(tried, Try::Fit { .. }));
        let patience = if ready { LATECOMERS } else { AUDITION };
        let late = |tried: &Try| matches!(tried, Try::Asked { at } | Try::Again { at } if now < *at + patience);
        let asked =
            crew.tries.iter().filter(|(node, tried)| late(tried) && self.peers.contains_key(node));
        let gathered = now >= crew.since + crew.gather && asked.count() == 0;
        let enough = if wanted > 0 { self.candidates(now, id).len() >= wanted } else { gathered };
        if enough && let Some(placed) = self.best(now, id) {
            self.call(now, id, &placed);
        }
    }

    /// Those that could have a seat.
    pub(super) fn candidates(&self, now: Time, id: CrewId) -> Vec<Candidate> {
        let Some(crew) = self.crews.get(&id) else { return Vec::new() };
        let fit = crew.tries.iter().filter_map(|(node, tried)| {
            let Try::Fit { rate } = *tried else { return None };
            let rate = crew.believed(*node, rate);
            let peer = self.peers.get(node)?;
            let out = crew.out.get(node).is_some_and(|(until, _)| *until > now);
            if out || peer.links.is_none() || !self.may_sit(peer, id) {
                return None;
            }
            let buffer = peer.caps.gpu.as_ref().map_or(0, |gpu| gpu.buffer_bytes);
            let memory = crew.plan.problem.budget(buffer, self.room_for_seat(peer, id));
            let round_trip = peer.round_trip.unwrap_or(USUAL_ROUND_TRIP);
            Some(Candidate { node: *node, rate, memory, round_trip })
        });
        fit.take(2 * MAX_MEMBERS).collect()
    }

    /// The crew that should be fastest now.
    pub(super) fn best(&self, now: Time, id: CrewId) -> Option<Placement> {
        let crew = self.crews.get(&id)?;
        let link = |a: NodeId, b: NodeId| {
            let seat = crew.seats.iter().find(|seat| seat.node == a)?;
            let report = seat.links.iter().find(|report| report.with == b)?;
            let (round_trip, bytes_per_second) = (report.round_trip, report.bytes_per_second);
            Some(Measured { round_trip, bytes_per_second })
        };
        let mut candidates = self.candidates(now, id);
        candidates.sort_by_key(|one| core::cmp::Reverse(one.rate));
        candidates.truncate(MAX_MEMBERS);
        place(&crew.plan.problem, &candidates, crew.plan.members, &link)
    }

    /// A new epoch begins.
    pub(super) fn call(&mut self, now: Time, id: CrewId, placed: &Placement) {
        let Some(known) = self.crew_job(id) else { return };
        let (job, epoch) = (known.id, Epoch(known.checkpoint.epoch.0 + 1));
        self.mark_time(now);
        self.record(Fact::Epoch { job, epoch });
        self.end_stale_check(id);
        self.forget_later_total(id);
        self.dismiss_but(id, &placed.shares.iter().map(|(node, _)| *node).collect::<Vec<_>>());
        let bands = placed.shares.iter();
        let seats = bands.filter_map(|(node, rows)| {
            let conn = self.conn_of(*node)?;
            Some(Seat::new(now, (*node, conn), *rows, self.next_attempt()))
        });
        let seats: Vec<_> = seats.collect();
        let keep = self.crews.get(&id).and_then(|crew| crew.plan.keep_every);
        let keep = keep.unwrap_or_else(|| (KEEP_EVERY.0 / placed.step.0.max(1)).max(1));
        let Some(known) = self.crew_job_mut(id) else { return };
        known.checkpoint.epoch = epoch;
        known.first_lent.get_or_insert(now);
        let from = known.checkpoint.step;
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let dropped = crew.arriving.values().flat_map(|parts| parts.values());
        let dropped: Vec<_> = dropped.map(|part| part.blob).collect();
        crew.arriving.clear();
        crew.finals.clear();
        crew.epoch = epoch;
        crew.seats = seats;
        crew.since = now;
        (crew.began, crew.moved) = (from, (from, now));
        crew.keep_every = keep;
        (crew.predicted, crew.alone, crew.apart) = (placed.step, placed.alone, placed.apart);
        self.drop_parts(id, dropped);
        self.enlist(now, id, epoch);
    }

    fn enlist(&mut self, now: Time, id: CrewId, epoch: Epoch) {
        let (Some(crew), Some(known)) = (self.crews.get(&id), self.crew_job(id)) else { return };
        let peers = crew.seats.iter().filter_map(|seat| self.peers.get(&seat.node));
        let members: Vec<_> = peers.map(|peer| (peer.node, peer.conn)).collect();
        let names: Vec<_> = members.iter().map(|(node, _)| format!("{node}")).collect();
        let what = format!(
            "nodes {} compute from step {} on; a step should take {}",
            names.join(", "),
            known.checkpoint.step,
            millis(crew.predicted),
        );
        let orders = self.orders(id, epoch);
        self.outputs.push_back(Output::Route { crew: id, epoch, members });
        for (conn, order) in orders {
            self.send(conn, ToNode::Enlist(Box::new(order)));
        }
        self.note_change(now, id, what);
        if self.crews.get(&id).is_some_and(|crew| crew.watched) {
            self.tell_watched(id);
        }
        self.tell_pokes(id);
    }

    /// What each member is told.
    fn orders(&self, id: CrewId, epoch: Epoch) -> Vec<(Conn, Enlist)> {
        let (Some(crew), Some(known)) = (self.crews.get(&id), self.crew_job(id)) else {
            return Vec::new();
        };
        let members = crew.seats.iter().filter_map(|seat| self.member_info(seat.node));
        let members: Vec<_> = members.collect();
        let bands: Vec<_> = crew.seats.iter().map(|seat| seat.rows).collect();
        let orders = crew.seats.iter().enumerate().filter_map(|(rank, seat)| {
            let task = CrewTask::Sim(SimTask {
                job: known.id,
                bands: bands.clone(),
                from: known.checkpoint.step,
                kept: known.checkpoint.parts.clone(),
                keep_every: crew.keep_every,
                attempt: seat.attempt,
                check: None,
                speculate: crew.plan.guesses,
                pokes: known.checkpoint.pokes.iter().map(|(step, poke)| (*step, *poke)).collect(),
                apart: crew.apart,
            });
            let order = Enlist {
                crew: id,
                epoch,
                rank: rank as u8,
                members: members.clone(),
                token: Vec::new(),
                ice: Vec::new(),
                task,
            };
            Some((self.conn_of(seat.node)?, order))
        });
        orders.collect()
    }

    /// What a node is told that computes a crew's steps again, alone.
    pub(super) fn check_order(
        &self,
        (crew, epoch, node): (CrewId, Epoch, NodeId),
        id: CrewId,
        base: &Base,
        to: u64,
        attempt: Attempt,
    ) -> Option<Box<Enlist>> {
        let known = self.crews.get(&id)?;
        let task = CrewTask::Sim(SimTask {
            job: known.job,
            bands: [Span::new(0, known.plan.problem.shares())].into(),
            from: base.step,
            kept: base.parts.clone(),
            keep_every: 0,
            attempt,
            check: Some(to),
            speculate: false,
            pokes: base.pokes.iter().map(|(step, poke)| (*step, *poke)).collect(),
            apart: false,
        });
        let (members, token, ice) = ([self.member_info(node)?].into(), Vec::new(), Vec::new());
        Some(Box::new(Enlist { crew, epoch, rank: 0, members, token, ice, task }))
    }

    /// Whoever has a seat and will have none any more is told.
    pub(super) fn dismiss_but(&mut self, id: CrewId, stay: &[NodeId]) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let gone = crew.seats.iter().map(|seat| seat.node).filter(|node| !stay.contains(node));
        let gone: Vec<_> = gone.collect();
        let conns: Vec<_> = gone.into_iter().filter_map(|node| self.conn_of(node)).collect();
        for conn in conns {
            self.send(conn, ToNode::Dismiss { crew: id });
        }
    }

    /// The last life may have ended while the last step's rows were merged. Another crew has other bands, none of which
    /// would fill what is left, so all are computed again.
    fn take_back_rows(&mut self, job: JobId) {
        let Some(known) = self.jobs.get(&job).filter(|known| !known.waiting.is_empty()) else {
            return;
        };
        let first = known.merged.iter().next().map(|(start, unit)| Span::new(*start, unit.len));
        if let Some(first) = first {
            self.unmerge(job, first);
        }
    }

    /// After replay: crews of jobs that run form again.
    pub(crate) fn form_again(&mut self, now: Time) {
        let open = self.jobs.iter().filter(|(_, job)| job.state == JobState::Running);
        let open = open.filter(|(_, job)| job.spec.work.takes_crew());
        let open: Vec<_> = open.map(|(id, _)| *id).collect();
        for job in open {
            self.take_back_rows(job);
            self.form(now, job, GATHER_AGAIN);
            self.recall(now, job);
            self.recall_proven(now, job);
        }
    }
}
