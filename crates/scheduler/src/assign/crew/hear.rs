//! What members and candidates say.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::id::clip;
use shoal_protocol::limit::{MAX_MEMBERS, MAX_TEXT_BYTES, MAX_TRIES};
use shoal_protocol::{
    CrewId, CrewSay, Epoch, Failure, LinkKey, LinkReport, Micros, NodeId, Signature, Span, Time,
};

use super::mend::OUT_FOR;
use super::{Crew, Try};
use crate::state::Scheduler;

/// A rate measured over less than this says little.
const MEASURED_AFTER: Micros = Micros::from_millis(200);
/// Links worse than this are not measured but made up: they would make a crew wait for ever.
const LONGEST_ROUND_TRIP: Micros = Micros::from_secs(10);
const LEAST_BANDWIDTH: u64 = 1_000;
/// Failures since the last checkpoint after which nobody's word is waited for: those who fail are left out for a
/// minute each, so that is long enough for everybody here to have had a seat.
const MAX_FAILURES: u32 = 4 * MAX_TRIES;

impl Scheduler {
    pub(crate) fn has_links(&mut self, now: Time, node: NodeId, key: LinkKey, proof: Signature) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if peer.links.replace((key, proof)) == Some((key, proof)) {
            return;
        }
        self.wake_crews_for(now, node);
        self.may_give_changed(now, node);
    }

    pub(crate) fn crew_said(
        &mut self,
        now: Time,
        node: NodeId,
        crew: CrewId,
        epoch: Epoch,
        say: CrewSay,
    ) {
        if let CrewSay::Meet { with } = say {
            return self.meet(now, node, with);
        }
        if self.pairs.contains_key(&crew) {
            return self.pair_said(now, node, crew, &say);
        }
        if let Some(service) = self.service_of_crew(crew) {
            return self.stage_said(now, service, (node, crew, epoch), say);
        }
        let (id, Some(known)) = (crew, self.crews.get(&crew)) else {
            return self.checker_said(now, node, crew, epoch, say);
        };
        if epoch == Epoch(0) {
            return self.auditioned(now, node, id, say);
        }
        let seat = known.seats.iter().position(|seat| seat.node == node);
        let Some(seat) = seat.filter(|_| known.epoch == epoch) else { return };
        if let Some(crew) = self.crews.get_mut(&id) {
            crew.seats[seat].heard = now;
        }
        // All rows are here: whatever becomes of a member now, nobody computes them again.
        let complete = self.crews.get(&id).is_some_and(Crew::is_complete);
        match say {
            CrewSay::Bad { .. } | CrewSay::Failed { .. } if complete => {}
            CrewSay::Progress { .. } => self.progressed(now, id, seat, say),
            CrewSay::Checkpoint { step, part } => self.checkpointed(now, id, seat, step, part),
            CrewSay::Slow { node: other } => self.waits_for(now, id, seat, other),
            CrewSay::Bad { node: other, why } => self.accused(now, id, node, other, &why),
            CrewSay::Failed { failure } => self.member_failed(now, id, node, failure),
            CrewSay::Poked { poke, step } => self.poked(id, seat, poke, step),
            CrewSay::Total { step, numbers } => self.totalled(id, seat, step, numbers),
            CrewSay::Auditioned { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave
            | CrewSay::Loaded
            | CrewSay::Staged(_) => {}
        }
    }

    fn auditioned(&mut self, now: Time, node: NodeId, id: CrewId, say: CrewSay) {
        match say {
            CrewSay::Auditioned { cells, took } => {
                let rate = cells.saturating_mul(1_000_000) / took.0.max(1);
                self.showed(now, node, id, rate.max(1));
            }
            CrewSay::Failed { failure } => {
                let Some(crew) = self.crews.get_mut(&id) else { return };
                if !matches!(crew.tries.get(&node), Some(Try::Asked { .. } | Try::Again { .. })) {
                    return;
                }
                let until = if failure.blames_job() { Time(u64::MAX) } else { now + OUT_FOR };
                crew.tries.insert(node, Try::Unfit { until });
                if matches!(failure, Failure::Unable { .. }) && !crew.unable.contains(&node) {
                    crew.unable.push(node);
                }
                self.blame(now, id, node, failure);
                self.wake_crews(now);
            }
            CrewSay::Progress { .. }
            | CrewSay::Checkpoint { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Bad { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. }
            | CrewSay::Loaded
            | CrewSay::Staged(_) => {}
        }
    }

    fn progressed(&mut self, now: Time, id: CrewId, at: usize, say: CrewSay) {
        let CrewSay::Progress { step, computed, waited, guessed, corrected, links } = say else {
            return;
        };
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let from = crew.began;
        let seat = &mut crew.seats[at];
        // Whoever boasts of more steps than there are does not end the job sooner.
        seat.step = step.min(crew.plan.steps);
        (seat.computed, seat.waited) = (computed, waited);
        (seat.guessed, seat.corrected) = (guessed, corrected);
        seat.links = links.into_iter().take(MAX_MEMBERS).map(believable).collect();
        if seat.waits_for.is_some_and(|(_, since)| now > since + Micros::from_secs(2)) {
            seat.waits_for = None;
        }
        let node = seat.node;
        let done = seat.step.saturating_sub(from);
        let work = crew.plan.problem.work(seat.rows).saturating_mul(done);
        if computed >= MEASURED_AFTER && done > 0 {
            let rate = u128::from(work) * 1_000_000 / u128::from(computed.0.max(1));
            let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(1);
            crew.tries.insert(node, Try::Fit { rate });
        }
        let least = crew.seats.iter().map(|seat| seat.step).min().unwrap_or(0);
        if least > crew.moved.0 {
            crew.moved = (least, now);
            // Somebody got through it.
            crew.victims.clear();
        }
        crew.see(now, node);
    }

    fn waits_for(&mut self, now: Time, id: CrewId, at: usize, other: NodeId) {
        if let Some(crew) = self.crews.get_mut(&id) {
            crew.seats[at].waits_for = Some((other, now));
        }
    }

    /// A member says that another did what no honest one does. Of two strangers nobody knows who lies: the
    /// accused goes, and so does whoever accuses twice.
    fn accused(&mut self, now: Time, id: CrewId, by: NodeId, other: NodeId, why: &str) {
        let why = clip(String::from(why), MAX_TEXT_BYTES);
        let trusted = |node: &NodeId| self.peers.get(node).is_some_and(|peer| peer.trusted);
        let frames = trusted(&other) && !trusted(&by);
        let sits = |node: NodeId| {
            let crew = self.crews.get(&id);
            crew.is_some_and(|crew| crew.seats.iter().any(|seat| seat.node == node))
        };
        if !sits(other) {
            return;
        }
        let (gone, what) = if frames {
            (by, format!("node {by} accuses the operator's own node {other}: {why}"))
        } else {
            (other, format!("node {by} reports node {other}: {why}"))
        };
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let accusations = crew.accusers.entry(by).or_default();
        *accusations += 1;
        let twice = *accusations >= 2;
        self.send_out(now, id, gone, &what);
        if twice && gone != by {
            self.send_out(now, id, by, "it accuses one member after another");
        }
    }

    fn member_failed(&mut self, now: Time, id: CrewId, node: NodeId, failure: Failure) {
        let what = format!("node {node} failed: {failure}");
        // A donor who changed their mind is no fault of anybody's.
        if let Some(crew) = self.crews.get_mut(&id)
            && !matches!(failure, Failure::Unable { .. })
        {
            crew.failures += 1;
        }
        if !self.blame(now, id, node, failure) {
            self.send_out(now, id, node, &what);
        }
    }

    /// Ends the job if it is at fault: then the same happens everywhere. Says whether it did.
    fn blame(&mut self, now: Time, id: CrewId, node: NodeId, failure: Failure) -> bool {
        let failure = failure.clipped();
        let Some(crew) = self.crews.get_mut(&id) else { return false };
        let (all, wanted) = (crew.plan.problem.shares(), crew.plan.members.max(1));
        let known = crew.failed_on.contains(&node) || crew.failed_on.len() >= MAX_MEMBERS;
        if failure.blames_job() && !known {
            crew.failed_on.push(node);
        }
        let (failed_on, unable) = (crew.failed_on.clone(), crew.unable.clone());
        let failures = crew.failures;
        let Some(known) = self.crew_job(id) else { return false };
        let others = self.able_besides(known, &failed_on);
        let enough = self.is_judged(known, &failed_on) || others < wanted;
        // Where every device that is here cannot, the job need not wait for one that can.
        let nobody = !unable.is_empty() && self.able_besides(known, &unable) < wanted;
        let often =
            failures >= MAX_TRIES && self.is_judged(known, &failed_on) || failures >= MAX_FAILURES;
        let hopeless = failure.blames_job() && enough || nobody || often;
        if hopeless {
            let nodes: Vec<_> = if failed_on.is_empty() { [node].into() } else { failed_on };
            self.fail_unit(now, known.id, Span::new(0, all), nodes, failure);
        }
        hopeless
    }
}

fn believable(mut report: LinkReport) -> LinkReport {
    report.round_trip = report.round_trip.min(LONGEST_ROUND_TRIP);
    report.bytes_per_second = report.bytes_per_second.map(|rate| rate.max(LEAST_BANDWIDTH));
    report
}
