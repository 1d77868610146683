//! Units that fail: tried elsewhere, cut smaller, or the end of their job.

use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::OVERTIME;
use shoal_protocol::{Attempt, Failure, Lane, LimitKind, NodeId, Time, ToNode};

use super::quarantine::How;
use crate::Output;
use crate::loans::Loan;
use crate::state::Scheduler;

/// A unit that was too large is cut this much smaller before anybody is blamed.
const SIZE_CUT: u64 = 4;
/// A unit not begun after this many times its own limit never will be.
const WAITS_FOR: u64 = 3;

impl Scheduler {
    pub(crate) fn failed(&mut self, now: Time, node: NodeId, attempt: Attempt, failure: Failure) {
        let failure = failure.clipped();
        let ours = self.loans.is_held(node, attempt);
        if !ours {
            return;
        }
        let Some(loan) = self.end_loan(attempt) else { return };
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.units_failed += 1;
            peer.last_job = Some(loan.job);
        }
        if self.shrinks_instead(&loan, &failure) {
            self.wait_again(now, &loan);
            return;
        }
        self.broke(now, node);
        if matches!(failure, Failure::Unable { .. }) {
            self.unable(now, node, &loan, failure);
            return;
        }
        let loan = self.singled_out(loan, &failure);
        self.note_loss(now, &loan, How::Failed { blames_job: failure.blames_job() });
        if let Some(history) = self.history(&loan) {
            history.words = Some(failure);
        }
        if !self.end_if_hopeless(now, loan.job, loan.unit) {
            self.wait_again(now, &loan);
        }
    }

    /// The node gets no more of the job; where nobody else could do it, these are the last words.
    fn unable(&mut self, now: Time, node: NodeId, loan: &Loan, failure: Failure) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.declined.insert(loan.job);
        }
        self.call_roll(node);
        let others = self.jobs.get(&loan.job).map_or(0, |job| self.able_besides(job, &[]));
        if others == 0 {
            self.fail(now, loan, failure);
        } else {
            self.wait_again(now, loan);
        }
    }

    /// A large unit out of time, or with more answers than a node can hold, says more about its size than
    /// about its job.
    fn shrinks_instead(&mut self, loan: &Loan, failure: &Failure) -> bool {
        let Failure::Limit { which, item: None, .. } = failure else { return false };
        let too_large = match which {
            LimitKind::Time => loan.lane == Lane::Gpu,
            LimitKind::Output => true,
            LimitKind::Memory => false,
        };
        let unproven = self.peers.get(&loan.node).is_none_or(|peer| self.is_newcomer(peer));
        let Some(job) = self.jobs.get_mut(&loan.job) else { return false };
        if unproven && job.items_done > 0 {
            // Others had time enough: one word of somebody who did nothing yet does not make all units smaller.
            return false;
        }
        let cuttable = job.units.get(&loan.unit).is_some_and(|unit| unit.is_idle());
        if !too_large || loan.span.len <= job.spec.sizing.step.max(1) || !cuttable {
            return false;
        }
        // Even the first unit may be too long; then only single items can tell whether the job is at fault.
        let grain = job.spec.sizing.grain;
        let smaller = (loan.span.len / SIZE_CUT).max(grain);
        job.size_cap = if loan.span.len > grain { smaller } else { job.spec.sizing.step.max(1) };
        true
    }

    /// The node says what it computes and what waits there: a unit far over its time has failed, whether or
    /// not the node admits it.
    pub(crate) fn note_late(
        &mut self,
        now: Time,
        node: NodeId,
        running: &[Attempt],
        queued: &[Attempt],
    ) {
        self.begin_loans(now, node, running);
        let held = running.iter().chain(queued).copied();
        let late: Vec<_> = held.filter(|attempt| self.is_late(now, node, *attempt)).collect();
        if late.is_empty() {
            return;
        }
        if let Some(peer) = self.peers.get(&node) {
            let message = ToNode::Revoke(late.clone());
            self.outputs.push_back(Output::Send { conn: peer.conn, message });
        }
        for attempt in late {
            let limit = self.loans.get(&attempt).and_then(|loan| self.jobs.get(&loan.job));
            let allowed = limit.map_or(0, |job| job.spec.limits.time.0);
            let which = LimitKind::Time;
            let stderr = String::new();
            let failure = Failure::Limit { item: None, which, allowed, stderr };
            self.failed(now, node, attempt, failure);
        }
        self.feed_hungry(now);
    }

    fn is_late(&self, now: Time, node: NodeId, attempt: Attempt) -> bool {
        let Some(loan) = self.loans.get(&attempt) else { return false };
        let Some(job) = self.jobs.get(&loan.job) else { return false };
        // Programs have their limit for each item, kernels for the unit.
        let runs = if loan.lane == Lane::Cpu { loan.span.len } else { 1 };
        let limit = job.spec.limits.time.0.saturating_mul(runs);
        // A unit waits at most for those lent before it.
        let (since, allowed) = match loan.running {
            Some(running) => (running, limit),
            None => (loan.since, limit.saturating_mul(WAITS_FOR)),
        };
        loan.node == node && (now - since).0 > allowed.saturating_add(OVERTIME.0)
    }
}

/// How many different owners these are, as far as networks tell: 0 is one that nobody knows.
pub(super) fn voices(networks: &[u64]) -> usize {
    let mut known: Vec<_> = networks.iter().filter(|network| **network != 0).collect();
    known.sort_unstable();
    known.dedup();
    known.len() + networks.iter().filter(|network| **network == 0).count()
}
