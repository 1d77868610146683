//! The way out: cancelling, removing, failing.

use alloc::vec::Vec;
use shoal_protocol::{Failure, JobId, NodeId, Span, Time};

use crate::Output;
use crate::fact::Fact;
use crate::job::{JobFailure, JobState};
use crate::loans::Loan;
use crate::state::Scheduler;

impl Scheduler {
    pub(crate) fn cancel(&mut self, now: Time, id: JobId) {
        if self.jobs.is_running(id) {
            self.record(Fact::Cancelled { job: id, at: now });
            self.close(now, id, JobState::Cancelled);
        }
    }

    /// Forgets an ended job; a running one is left alone.
    pub(crate) fn remove(&mut self, id: JobId) {
        if self.jobs.contains_key(&id) && !self.jobs.is_running(id) {
            self.record(Fact::Removed { job: id });
            self.jobs.remove(id);
            self.outputs.push_back(Output::Removed(id));
        }
    }

    /// Ended jobs are kept for a while, not for ever.
    pub(crate) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.jobs.one_too_many() {
            self.remove(oldest);
        }
    }

    /// Ends a job with a node's own words.
    pub(crate) fn fail(&mut self, now: Time, loan: &Loan, failure: Failure) {
        let unit = self.jobs.get(&loan.job).and_then(|job| job.units.get(&loan.unit));
        let mut nodes = unit.map(|unit| unit.history.failed_on()).unwrap_or_default();
        if !nodes.contains(&loan.node) {
            nodes.push(loan.node);
        }
        self.fail_unit(now, loan.job, loan.span, nodes, failure);
    }

    pub(crate) fn fail_unit(
        &mut self,
        now: Time,
        id: JobId,
        span: Span,
        nodes: Vec<NodeId>,
        failure: Failure,
    ) {
        let failure = JobFailure { span, nodes, failure };
        self.record(Fact::Failed { job: id, at: now, failure: failure.clone() });
        if let Some(job) = self.jobs.get_mut(&id) {
            job.failure = Some(failure);
        }
        self.close(now, id, JobState::Failed);
    }
}
