//! Members that leave, fall silent, stall, fail or cheat; and crews that would be faster otherwise. Whatever
//! happens, those who stay go on from the last checkpoint in a new epoch; nobody computes on a hole.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{CrewId, Failure, Micros, NodeId, Span, Time};

use super::Try;
use super::place::{Placement, refill};
use crate::peers::Peer;
use crate::state::Scheduler;

/// A member is heard twice a second; so long a silence is a stuck device.
pub(super) const SILENT: Micros = Micros::from_secs(3);
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
/// A crew that takes so many times as long as its members' words promised was promised too much.
const BOASTED: u64 = 4;
/// Until a checkpoint that is so near nothing is changed, because all since the last would be lost.
const WORTH_WAITING: Micros = Micros::from_secs(60);
/// Tokens of an epoch are good for a day: a crew that lasts longer gets new ones in time.
const RENEWED: Micros = Micros::from_secs(12 * 3_600);

impl Scheduler {
    pub(super) fn mend(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        // What members handed in does not go with them.
        if crew.seats.is_empty() || crew.is_complete() {
            return;
        }
        let lost: Vec<_> = crew.seats.iter().map(|seat| seat.node).collect();
        let lost = lost.into_iter().filter(|node| match self.peers.get(node) {
            Some(peer) => {
                let fits = peer.caps.holds(&self.in_use(peer));
                !fits || !self.may_sit(peer, id) || self.has_moved(id, peer)
            }
            None => true,
        });
        if let Some(node) = lost.into_iter().next() {
            let there = self.peers.contains_key(&node);
            let how = if there { "takes no part any more" } else { "left" };
            let what = format!("node {node} {how}");
            self.note_victim(now, id, node);
            return self.disband(now, id, &what);
        }
        let silent = crew.seats.iter().find(|seat| now > seat.heard + SILENT).map(|seat| seat.node);
        if let Some(node) = silent {
            return self.rest(now, id, node, &format!("node {node} fell silent"));
        }
        if now > crew.moved.1 + self.patience(id) {
            let node = self.culprit(id);
            return self.rest(now, id, node, &format!("node {node} stalled the others"));
        }
        self.hold_to_clock(now, id);
    }

    /// A crew that is far slower than its members said need not come to a checkpoint before there is a better one.
    fn hold_to_clock(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        let (done, took) = (crew.moved.0 - crew.began, (now - crew.since).0);
        let last = crew.plan.steps.saturating_sub(crew.moved.0);
        let to_come = match crew.keep_every {
            0 => last,
            every => (every - crew.moved.0 % every).min(last),
        };
        let measured = took / done.max(1);
        let soon = Micros(to_come.saturating_mul(measured)) < WORTH_WAITING;
        if now < crew.since + SETTLED || soon || !self.clock(now, id) {
            return;
        }
        let better = self.best(now, id).filter(|best| best.step.0 < measured * FASTER / 100);
        if better.is_some() {
            self.disband(now, id, "its members are far slower than they said");
        }
    }

    /// Members say themselves how fast they are. Where a crew is far slower than that by the coordinator's clock,
    /// strangers count for what they did in that time. Says whether it is news of somebody.
    fn clock(&mut self, now: Time, id: CrewId) -> bool {
        let Some(crew) = self.crews.get(&id) else { return false };
        let (steps, took) = (crew.moved.0 - crew.began, (now - crew.since).0);
        let steps = steps.max(1);
        if took < crew.predicted.0.saturating_mul(steps).saturating_mul(BOASTED) {
            return false;
        }
        let strangers = crew.seats.iter().filter(|seat| {
            let own = self.peers.get(&seat.node).is_some_and(|peer| peer.trusted);
            !own && !crew.clocked.contains_key(&seat.node)
        });
        let clocked = strangers.map(|seat| {
            let done = u128::from(crew.plan.problem.work(seat.rows)) * u128::from(steps);
            let rate = done * 1_000_000 / u128::from(took.max(1));
            (seat.node, u64::try_from(rate).unwrap_or(u64::MAX).max(1))
        });
        let clocked: Vec<_> = clocked.collect();
        let Some(crew) = self.crews.get_mut(&id) else { return false };
        let news = !clocked.is_empty();
        crew.clocked.extend(clocked);
        news
    }

    /// It is here, but not on the connection on which it got its place: it has dropped it.
    fn has_moved(&self, id: CrewId, peer: &Peer) -> bool {
        let seats = self.crews.get(&id).map(|crew| crew.seats.as_slice()).unwrap_or_default();
        seats.iter().any(|seat| seat.node == peer.node && seat.conn != peer.conn)
    }

    /// How long no step may be done. Rows that are loaded, stored or handed in take time, and no step.
    fn patience(&self, id: CrewId) -> Micros {
        let Some(crew) = self.crews.get(&id) else { return STALLED };
        let plan = &crew.plan;
        let steps = crew.predicted.0.saturating_mul(20).clamp(STALLED.0, LONGEST_STEP.0);
        let moving = crew.moved.0 == crew.began || crew.moved.0 >= plan.steps;
        if !moving && crew.arriving.is_empty() {
            return Micros(steps);
        }
        let bytes = plan.problem.kept_bytes(Span::new(0, plan.problem.shares()));
        Micros(steps + bytes.saturating_mul(1_000_000) / SLOWEST_LINE)
    }

    /// Who is waited for and waits for nobody; else who is furthest behind.
    fn culprit(&self, id: CrewId) -> NodeId {
        let seats = self.crews.get(&id).map(|crew| crew.seats.as_slice()).unwrap_or_default();
        let named =
            |node: NodeId| seats.iter().any(|s| s.waits_for.is_some_and(|(n, _)| n == node));
        let guilty = seats.iter().filter(|s| s.waits_for.is_none() && named(s.node));
        let guilty = guilty.min_by_key(|seat| seat.step);
        let behind = || seats.iter().min_by_key(|seat| seat.step);
        guilty.or_else(behind).map_or(NodeId(0), |seat| seat.node)
    }

    /// A device that had to do something else may soon be back.
    fn rest(&mut self, now: Time, id: CrewId, node: NodeId, what: &str) {
        self.leave_out(now + RESTS_FOR, now, id, node, what);
    }

    /// A node gets no seat for a while; if it has one, the crew changes.
    pub(super) fn send_out(&mut self, now: Time, id: CrewId, node: NodeId, what: &str) {
        self.leave_out(now + OUT_FOR, now, id, node, what);
    }

    fn leave_out(&mut self, until: Time, now: Time, id: CrewId, node: NodeId, what: &str) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        crew.out.insert(node, (until, String::from(what)));
        // It shows anew what it can before it is called again.
        if !matches!(crew.tries.get(&node), Some(Try::Unfit { .. })) {
            crew.tries.remove(&node);
        }
        if crew.seats.iter().any(|seat| seat.node == node) {
            self.disband(now, id, what);
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
        self.wake_crews(now);
    }

    /// The crew stops; those who can are called anew at once.
    pub(super) fn disband(&mut self, now: Time, id: CrewId, what: &str) {
        self.note_change(now, id, String::from(what));
        if let Some(known) = self.crew_job_mut(id) {
            known.retries += 1;
        }
        if let Some(placed) = self.mended(now, id) {
            return self.call(now, id, &placed);
        }
        self.dismiss_but(id, &[]);
        self.close_route(id);
        if let Some(crew) = self.crews.get_mut(&id) {
            crew.seats.clear();
            crew.since = now;
        }
    }

    /// Who goes on. The kind says whether the others go back anyway, so that all may be placed anew, or stay as they
    /// are, so that only empty places are filled.
    fn mended(&self, now: Time, id: CrewId) -> Option<Placement> {
        let crew = self.crews.get(&id)?;
        let seats: Vec<_> = crew.seats.iter().map(|seat| (seat.node, seat.rows)).collect();
        refill(&crew.plan, &seats, &self.candidates(now, id), crew.predicted)
            .or_else(|| self.best(now, id))
    }

    /// A node that vanished before the first step may have been ended by the kernel itself.
    fn note_victim(&mut self, now: Time, id: CrewId, node: NodeId) {
        let from = self.crew_job(id).map_or(0, |job| job.checkpoint.step);
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let (job, all) = (crew.job, crew.plan.problem.shares());
        if crew.moved.0 > from || self.peers.contains_key(&node) || crew.victims.contains(&node) {
            return;
        }
        if crew.victims.len() < MAX_MEMBERS {
            crew.victims.push(node);
        }
        let nodes = crew.victims.clone();
        // While somebody is here whose word is worth more, and was not ended by it, it goes on.
        let judged = self.crew_job(id).is_some_and(|job| self.is_judged(job, &nodes));
        if nodes.len() >= VICTIMS && judged {
            let message = format!("{VICTIMS} nodes vanished when they began to compute it");
            let failure = Failure::Kernel { message };
            self.fail_unit(now, job, Span::new(0, all), nodes, failure);
        }
    }

    /// At a checkpoint nothing is lost by a change: is there a crew that would be faster?
    pub(super) fn improve(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get(&id) else { return };
        let from = self.crew_job(id).map_or(0, |job| job.checkpoint.step);
        if now < crew.since + SETTLED || crew.began == from {
            return;
        }
        let steps = from - crew.began;
        let measured = (now - crew.since).0 / steps.max(1);
        self.clock(now, id);
        let Some(placed) = self.best(now, id) else { return };
        let Some(crew) = self.crews.get(&id) else { return };
        let same = placed.shares.iter().zip(&crew.seats).all(|((node, rows), seat)| {
            let moved = rows.len.abs_diff(seat.rows.len) * 10;
            *node == seat.node && moved <= seat.rows.len
        });
        let same = same && placed.shares.len() == crew.seats.len() && placed.apart == crew.apart;
        if now > crew.since + RENEWED {
            self.note_change(now, id, String::from("half a day has passed: new tokens"));
            return self.call(now, id, &placed);
        }
        if !same && placed.step.0 < measured * FASTER / 100 {
            let (now_takes, then) = (Micros(measured), placed.step);
            let what = format!(
                "a better crew was found: {} a step, {} predicted",
                crate::explain::millis(now_takes),
                crate::explain::millis(then)
            );
            self.note_change(now, id, what);
            self.call(now, id, &placed);
        }
    }
}
