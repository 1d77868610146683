//! Putting results together: a unit's answer is merged once, and a job whose items are all merged is done.

use alloc::vec::Vec;
use shoal_protocol::{JobId, Micros, NodeId, Span, Time, Verify};

use crate::fact::{Fact, Failed, Place};
use crate::job::{Job, JobState, Proof};
use crate::loans::Loan;
use crate::meter::Pace;
use crate::state::{Conn, Scheduler};
use crate::{Arrived, Output};

impl Scheduler {
    /// A node's answers. Those of attempts that are no longer lent to it change nothing.
    pub(crate) fn arrived(&mut self, now: Time, conn: Conn, results: &[Arrived]) {
        let Some(node) = self.peers.on(conn) else { return };
        self.peers.heard(now, node);
        for result in results {
            let Some(loan) = self.end_loan_of(node, result.attempt) else {
                self.final_rows(now, conn, result.attempt, result.place);
                continue;
            };
            self.made_up(node);
            self.learn_pace(now, node, &loan, result.took);
            self.answered(now, node, &loan, result.place);
        }
        self.feed(now, node);
        self.feed_those_in_turn(now, node);
    }

    /// Believes an answer. Its proof becomes durable before the unit counts as merged.
    pub(crate) fn merge_unit(
        &mut self,
        now: Time,
        id: JobId,
        span: Span,
        node: NodeId,
        place: Option<Place>,
        proof: Option<&Proof>,
    ) {
        if let Some(proof) = proof {
            self.confirm(id, span, node, proof);
        }
        self.mark_time(now);
        self.introduce(node);
        self.record(Fact::Merged { job: id, span, node, place });
        self.register.count_unit(node);
        let failed = place.map_or(Failed::default(), |place| place.failed);
        if failed != Failed::default() {
            self.record(Fact::FailedItems { job: id, span, failed });
        }
        self.close_unit(id, span.start);
        let passed = self.jobs.passed();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.meter.add(now, span.len);
        job.merge(passed, span, node, place);
        if proof.is_none() && job.spec.policy.verify == Verify::Adaptive {
            *job.unaudited.entry(node).or_default() += 1;
        }
    }

    /// Receipts say when units were merged, and crews when they were called; a time in each fact would double
    /// the facts.
    pub(crate) fn mark_time(&mut self, now: Time) {
        if self.jobs.pass(now) {
            self.record(Fact::Passed { at: now });
        }
    }

    /// A unit is settled: whoever still has a copy may stop.
    pub(crate) fn close_unit(&mut self, id: JobId, start: u64) {
        let Some(unit) = self.jobs.get(&id).and_then(|job| job.units.get(&start)) else { return };
        let copies: Vec<_> = unit.copies.iter().map(|copy| copy.attempt).collect();
        if !unit.history.is_clean() && !unit.history.skipped {
            let history = unit.history.clone();
            self.blame_false_alarms(self.now, &history);
        }
        if !copies.is_empty() {
            self.revoke(&copies);
        }
        self.jobs.drop_unit(id, start);
    }

    /// A job is done when all is merged and nothing is looked at again.
    pub(crate) fn finish_if_whole(&mut self, now: Time, id: JobId) {
        let whole = |job: &Job| {
            let running = job.state == JobState::Running;
            running && job.items_done == job.spec.items && job.units.is_empty()
        };
        if !self.jobs.get(&id).is_some_and(whole) {
            return;
        }
        self.audit(now, id);
        if self.jobs.get(&id).is_some_and(whole) {
            self.finish(now, id);
        }
    }

    fn finish(&mut self, now: Time, id: JobId) {
        self.record(Fact::Finished { job: id, at: now });
        self.close(now, id, JobState::Done);
    }

    /// What a job's end means for everybody: nothing is lent any more, nodes may forget it.
    pub(crate) fn close(&mut self, now: Time, id: JobId, state: JobState) {
        let Some(job) = self.jobs.end(now, id, state) else { return };
        let copies = job.units.values().flat_map(|unit| &unit.copies);
        let leased: Vec<_> = copies.map(|copy| copy.attempt).collect();
        let told = core::mem::take(&mut job.told);
        job.total_milli_rate = 0;
        self.revoke(&leased);
        for node in &told {
            let Some(peer) = self.peers.get_mut(node) else { continue };
            peer.told.remove(&id);
            peer.forgot.remove(&id);
            peer.declined.remove(&id);
            peer.paces.remove(&id);
            let conn = peer.conn;
            let message = shoal_protocol::ToNode::Forget(id);
            self.outputs.push_back(Output::Send { conn, message });
        }
        self.jobs.drop_units(id);
        self.end_crews(id);
        self.outputs.push_back(Output::Ended(id));
        self.forget_oldest();
        // Their hands are free now.
        for node in told {
            self.feed(now, node);
        }
    }

    fn learn_pace(&mut self, now: Time, node: NodeId, loan: &Loan, took: Micros) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        // Nobody computed longer than the unit was lent.
        let took = took.min(now - loan.since);
        if self.register.is_newcomer(peer) {
            self.conducts.note_show();
        }
        peer.units_done += 1;
        peer.busy.add(now, took.0);
        peer.last_job = Some(loan.job);
        let needs = self.jobs.get(&loan.job).map(|job| &job.spec.needs);
        let slots = needs.map_or(0, |needs| u64::from(peer.caps.slots_for(needs)));
        let sample = u128::from(loan.span.len) * 1_000_000_000 / u128::from(took.0.max(1));
        let sample = u64::try_from(sample).unwrap_or(u64::MAX);
        let known = peer.paces.entry(loan.job).or_default();
        let old = *known;
        let anew = old.milli_rate == 0 || old.stale;
        let milli_rate = if anew { sample } else { old.milli_rate / 2 + sample / 2 }.max(1);
        let last_size = old.last_size.max(loan.span.len);
        let best = old.best.max(milli_rate);
        let pace = Pace { milli_rate, slots, last_size, best, stale: false };
        *known = pace;
        if let Some(job) = self.jobs.get_mut(&loan.job) {
            // A unit of the largest size still tried went well: the next may be larger again.
            if loan.span.len >= job.size_cap {
                job.size_cap = job.size_cap.saturating_mul(2);
            }
            job.repace(old, pace);
            job.saw(sample);
        }
    }

    /// Keeps the job's total in step.
    pub(crate) fn set_pace(&mut self, node: NodeId, id: JobId, pace: Pace) {
        let (Some(peer), Some(job)) = (self.peers.get_mut(&node), self.jobs.get_mut(&id)) else {
            return;
        };
        let old = peer.paces.insert(id, pace).unwrap_or_default();
        job.repace(old, pace);
    }
}
