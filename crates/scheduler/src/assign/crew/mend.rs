//! Members that leave, fall silent, stall, fail or cheat; and crews that would be faster otherwise. Whatever
//! happens, those who stay go on from the last checkpoint in a new epoch; nobody computes on a hole.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{Failure, JobId, Micros, NodeId, Span, Time};

use super::Try;
use crate::state::{Peer, Scheduler};

/// A member is heard twice a second; so long a silence is a stuck device.
const SILENT: Micros = Micros::from_secs(3);
/// No step in this time, and in twenty times what one should take, is a stall.
const STALLED: Micros = Micros::from_secs(8);
/// Whatever members say a step takes, nobody waits longer for one.
const LONGEST_STEP: Micros = Micros::from_secs(600);
/// Bytes per second at which rows travel to and from the coordinator at least: a phone's.
const SLOWEST_LINE: u64 = 250_000;
/// A node that was sent out may try again after this time.
pub(super) const OUT_FOR: Micros = Micros::from_secs(60);
/// One that fell silent or stalled, sooner.
const RESTS_FOR: Micros = Micros::from_secs(10);
/// Nodes that vanish before the first step of an epoch: so many, and the job is what ends them.
const VICTIMS: usize = 6;
/// A new crew must be this much faster, in percent, and the old one have worked so long.
const FASTER: u64 = 75;
const SETTLED: Micros = Micros::from_secs(10);
/// Tokens of an epoch are good for a day: a crew that lasts longer gets new ones in time.
const RENEWED: Micros = Micros::from_secs(12 * 3_600);

impl Scheduler {
    pub(super) fn mend(&mut self, now: Time, job: JobId) {
        let Some(crew) = self.crews.get(&job) else { return };
        if crew.seats.is_empty() {
            return;
        }
        let lost: Vec<_> = crew.seats.iter().map(|seat| seat.node).collect();
        let lost = lost.into_iter().filter(|node| match self.peers.get(node) {
            Some(peer) => !self.may_sit(peer, job) || self.has_moved(job, peer),
            None => true,
        });
        if let Some(node) = lost.into_iter().next() {
            let there = self.peers.contains_key(&node);
            let how = if there { "takes no part any more" } else { "left" };
            let what = format!("node {node} {how}");
            self.note_victim(now, job, node);
            return self.disband(now, job, &what);
        }
        let silent = crew.seats.iter().find(|seat| now > seat.heard + SILENT).map(|seat| seat.node);
        if let Some(node) = silent {
            return self.rest(now, job, node, &format!("node {node} fell silent"));
        }
        if now > crew.moved.1 + self.patience(job) {
            let node = self.culprit(job);
            self.rest(now, job, node, &format!("node {node} stalled the others"));
        }
    }

    /// It is here, but not on the connection on which it got its place: it has dropped it.
    fn has_moved(&self, job: JobId, peer: &Peer) -> bool {
        let seats = self.crews.get(&job).map(|crew| crew.seats.as_slice()).unwrap_or_default();
        seats.iter().any(|seat| seat.node == peer.node && seat.conn != peer.conn)
    }

    /// How long no step may be done. Rows that are loaded, stored or handed in take time, and no step.
    fn patience(&self, job: JobId) -> Micros {
        let (Some(crew), Some(sim)) = (self.crews.get(&job), self.sim(job)) else { return STALLED };
        let steps = crew.predicted.0.saturating_mul(20).clamp(STALLED.0, LONGEST_STEP.0);
        let moving = crew.moved.0 == crew.began || crew.moved.0 >= sim.steps;
        if !moving && crew.arriving.is_empty() {
            return Micros(steps);
        }
        let bytes = u64::from(sim.height).saturating_mul(sim.row_bytes());
        Micros(steps + bytes.saturating_mul(1_000_000) / SLOWEST_LINE)
    }

    /// Who is waited for and waits for nobody; else who is furthest behind.
    fn culprit(&self, job: JobId) -> NodeId {
        let seats = self.crews.get(&job).map(|crew| crew.seats.as_slice()).unwrap_or_default();
        let named =
            |node: NodeId| seats.iter().any(|s| s.waits_for.is_some_and(|(n, _)| n == node));
        let guilty = seats.iter().filter(|s| s.waits_for.is_none() && named(s.node));
        let guilty = guilty.min_by_key(|seat| seat.step);
        let behind = || seats.iter().min_by_key(|seat| seat.step);
        guilty.or_else(behind).map_or(NodeId(0), |seat| seat.node)
    }

    /// A device that had to do something else may soon be back.
    fn rest(&mut self, now: Time, job: JobId, node: NodeId, what: &str) {
        self.leave_out(now + RESTS_FOR, now, job, node, what);
    }

    /// A node gets no seat for a while; if it has one, the crew changes.
    pub(super) fn send_out(&mut self, now: Time, job: JobId, node: NodeId, what: &str) {
        self.leave_out(now + OUT_FOR, now, job, node, what);
    }

    fn leave_out(&mut self, until: Time, now: Time, job: JobId, node: NodeId, what: &str) {
        let Some(crew) = self.crews.get_mut(&job) else { return };
        crew.out.insert(node, (until, String::from(what)));
        // It shows anew what it can before it is called again.
        if !matches!(crew.tries.get(&node), Some(Try::Unfit { .. })) {
            crew.tries.remove(&node);
        }
        if crew.seats.iter().any(|seat| seat.node == node) {
            self.disband(now, job, what);
        }
    }

    /// A node that comes back shows anew what it can.
    pub(crate) fn untry(&mut self, node: NodeId) {
        for crew in self.crews.values_mut() {
            crew.tries.remove(&node);
        }
    }

    /// It is here, or here again: then the kernel did not end it.
    pub(crate) fn came_back(&mut self, now: Time, node: NodeId) {
        for crew in self.crews.values_mut() {
            crew.victims.retain(|victim| *victim != node);
        }
        self.stir_crews(now);
    }

    /// The crew stops; those who can are called anew at once.
    fn disband(&mut self, now: Time, job: JobId, what: &str) {
        self.note_change(now, job, String::from(what));
        if let Some(known) = self.jobs.get_mut(&job) {
            known.retries += 1;
        }
        if let Some(placed) = self.best(now, job) {
            return self.call(now, job, &placed);
        }
        self.dismiss_but(job, &[]);
        self.close_route(job);
        if let Some(crew) = self.crews.get_mut(&job) {
            crew.seats.clear();
            crew.since = now;
        }
    }

    /// A node that vanished before the first step may have been ended by the kernel itself.
    fn note_victim(&mut self, now: Time, job: JobId, node: NodeId) {
        let from = self.jobs.get(&job).map_or(0, |job| job.kept.step);
        let height = self.sim(job).map_or(0, |sim| u64::from(sim.height));
        let Some(crew) = self.crews.get_mut(&job) else { return };
        if crew.moved.0 > from || self.peers.contains_key(&node) || crew.victims.contains(&node) {
            return;
        }
        if crew.victims.len() < MAX_MEMBERS {
            crew.victims.push(node);
        }
        let nodes = crew.victims.clone();
        // While somebody is here whose word is worth more, and was not ended by it, it goes on.
        let judged = self.jobs.get(&job).is_some_and(|job| self.is_judged(job, &nodes));
        if nodes.len() >= VICTIMS && judged {
            let message = format!("{VICTIMS} nodes vanished when they began to compute it");
            let failure = Failure::Kernel { message };
            self.fail_unit(now, job, Span::new(0, height), nodes, failure);
        }
    }

    /// At a checkpoint nothing is lost by a change: is there a crew that would be faster?
    pub(super) fn improve(&mut self, now: Time, job: JobId) {
        let Some(crew) = self.crews.get(&job) else { return };
        let from = self.jobs.get(&job).map_or(0, |job| job.kept.step);
        if now < crew.since + SETTLED || crew.began == from {
            return;
        }
        let steps = from - crew.began;
        let measured = (now - crew.since).0 / steps.max(1);
        let Some(placed) = self.best(now, job) else { return };
        let same = placed.bands.iter().zip(&crew.seats).all(|((node, rows), seat)| {
            let moved = rows.len.abs_diff(seat.rows.len) * 10;
            *node == seat.node && moved <= seat.rows.len
        });
        let same = same && placed.bands.len() == crew.seats.len();
        if now > crew.since + RENEWED {
            self.note_change(now, job, String::from("half a day has passed: new tokens"));
            return self.call(now, job, &placed);
        }
        if !same && placed.step.0 < measured * FASTER / 100 {
            let (now_takes, then) = (Micros(measured), placed.step);
            let what = format!(
                "a better crew was found: {} a step, {} predicted",
                crate::explain::millis(now_takes),
                crate::explain::millis(then)
            );
            self.note_change(now, job, what);
            self.call(now, job, &placed);
        }
    }
}
