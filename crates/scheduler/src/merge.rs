//! Putting results together: a unit's answer is merged once, and a job whose items are all merged is done.

use alloc::vec::Vec;
use shoal_protocol::{JobId, Micros, NodeId, Time};

use crate::fact::{Fact, Place};
use crate::job::JobState;
use crate::meter::Pace;
use crate::state::{Conn, Scheduler};
use crate::unit::Loan;
use crate::{Arrived, Output};

impl Scheduler {
    /// A node's answers. Those of attempts that are no longer lent to it change nothing.
    pub(crate) fn arrived(&mut self, now: Time, conn: Conn, results: &[Arrived]) {
        let Some(&node) = self.conns.get(&conn) else { return };
        self.heard(now, node);
        for result in results {
            let ours = self.loans.get(&result.attempt).is_some_and(|loan| loan.node == node);
            if !ours {
                continue;
            }
            if let Some(loan) = self.end_loan(result.attempt) {
                self.learn_pace(now, node, &loan, result.took);
                self.merge_unit(now, node, &loan, result.place);
            }
        }
        self.feed(now, node);
        self.feed_those_in_turn(now, node);
    }

    fn merge_unit(&mut self, now: Time, node: NodeId, loan: &Loan, place: Option<Place>) {
        self.record(Fact::Merged { job: loan.job, span: loan.span, node, place });
        self.close_unit(loan.job, loan.unit);
        let Some(job) = self.jobs.get_mut(&loan.job) else { return };
        job.meter.add(now, loan.span.len);
        job.merge(loan.span, node, place);
        if job.items_done == job.spec.items {
            self.finish(now, loan.job);
        }
    }

    /// A unit is settled: whoever still has a copy may stop.
    pub(crate) fn close_unit(&mut self, id: JobId, start: u64) {
        let copies = self.jobs.get(&id).and_then(|job| job.units.get(&start));
        let copies = copies.map(|unit| unit.copies.iter().map(|copy| copy.attempt));
        let copies: Vec<_> = copies.into_iter().flatten().collect();
        self.revoke(&copies);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(unit) = job.units.remove(&start) {
            job.items_idle -= if unit.is_idle() { unit.span.len } else { 0 };
            self.refresh(id, start);
        }
    }

    fn finish(&mut self, now: Time, id: JobId) {
        self.record(Fact::Finished { job: id, at: now });
        self.close(now, id, JobState::Done);
    }

    /// What a job's end means for everybody: nothing is lent any more, nodes may forget it.
    pub(crate) fn close(&mut self, now: Time, id: JobId, state: JobState) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.state = state;
        job.ended = Some(now);
        self.open -= 1;
        self.ready.remove(&(job.served, id));
        let copies = job.units.values().flat_map(|unit| &unit.copies);
        let leased: Vec<_> = copies.map(|copy| copy.attempt).collect();
        let told = core::mem::take(&mut job.told);
        job.total_milli_rate = 0;
        self.revoke(&leased);
        for node in &told {
            let Some(peer) = self.peers.get_mut(node) else { continue };
            peer.told.remove(&id);
            peer.forgot.remove(&id);
            peer.paces.remove(&id);
            let conn = peer.conn;
            let message = shoal_protocol::ToNode::Forget(id);
            self.outputs.push_back(Output::Send { conn, message });
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            job.units.clear();
            job.wanting.clear();
            job.items_idle = 0;
        }
        self.outputs.push_back(Output::Ended(id));
        self.forget_oldest();
        // Their hands are free now.
        for node in told {
            self.feed(now, node);
        }
    }

    fn learn_pace(&mut self, now: Time, node: NodeId, loan: &Loan, took: Micros) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.units_done += 1;
        peer.busy.add(now, took.0);
        peer.last_job = Some(loan.job);
        let Some(job) = self.jobs.get_mut(&loan.job) else { return };
        let slots = u64::from(peer.caps.slots(loan.lane));
        let sample = u128::from(loan.span.len) * 1_000_000_000 / u128::from(took.0.max(1));
        let sample = u64::try_from(sample).unwrap_or(u64::MAX);
        let old = peer.paces.get(&loan.job).copied().unwrap_or_default();
        let milli_rate =
            if old.milli_rate == 0 { sample } else { old.milli_rate / 2 + sample / 2 }.max(1);
        let last_size = old.last_size.max(loan.span.len);
        let pace = Pace { milli_rate, slots, last_size };
        peer.paces.insert(loan.job, pace);
        job.total_milli_rate =
            job.total_milli_rate.saturating_sub(old.all_slots()).saturating_add(pace.all_slots());
    }
}
