//! What members make of all their rows at a checkpoint. Rank 0 says it, and is believed as far as its rows are: where
//! somebody computes the same step again, what that one makes of it counts, and where rows were wrong, nothing does.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{CrewId, JobId};

use crate::fact::Fact;
use crate::state::Scheduler;

/// Checkpoints that a total may be ahead of the last whole one: members store two at a time, and are apart by a step
/// from rank to rank. A node that makes up more fills no disk with them.
const MAX_AHEAD: u64 = 4 + MAX_MEMBERS as u64;

/// A few numbers of the whole field.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// After so many steps.
    pub step: u64,
    pub numbers: Vec<f64>,
}

impl Total {
    pub(crate) fn new(step: u64, numbers: Vec<f64>) -> Option<Total> {
        (!numbers.is_empty()).then_some(Total { step, numbers })
    }

    pub(crate) fn words(&self, how: &str) -> String {
        let numbers: Vec<_> = self.numbers.iter().map(|number| format!("{number}")).collect();
        format!("after step {} the {how} of all cells is {}", self.step, numbers.join(", "))
    }
}

impl Scheduler {
    /// Rank 0 says what all made together.
    pub(super) fn totalled(&mut self, id: CrewId, at: usize, step: u64, numbers: Vec<f64>) {
        let known = self.crew_job(id).and_then(|job| job.total.as_ref());
        let newer = known.is_none_or(|known| known.step < step);
        if at == 0
            && newer
            && let Some(total) = self.fitting(id, step, numbers)
        {
            self.record_total(id, total);
        }
    }

    /// The same of somebody who computes it again.
    pub(super) fn checker_totalled(&mut self, id: CrewId, step: u64, numbers: Vec<f64>) {
        let total = self.fitting(id, step, numbers);
        let check = self.crews.get_mut(&id).and_then(|crew| crew.check.as_mut());
        if let Some(check) = check.filter(|check| check.to == step) {
            check.total = total;
        }
    }

    /// The checker's rows were the same, so its total is right.
    pub(super) fn take_total(&mut self, id: CrewId, total: Option<Total>) {
        let Some(total) = total else { return };
        let known = self.crew_job(id).and_then(|job| job.total.as_ref());
        if known.is_none_or(|known| known.step <= total.step && *known != total) {
            self.record_total(id, total);
        }
    }

    /// A new crew goes on from a checkpoint: what was made of later rows is made again.
    pub(super) fn forget_later_total(&mut self, id: CrewId) {
        let Some(known) = self.crew_job(id) else { return };
        let (job, kept) = (known.id, known.checkpoint.step);
        if known.total.as_ref().is_some_and(|total| total.step > kept) {
            self.forget_total(job);
        }
    }

    /// It came of wrong rows, perhaps.
    pub(super) fn forget_total(&mut self, job: JobId) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        if known.total.take().is_some() {
            self.record(Fact::Total { job, step: 0, numbers: Vec::new() });
        }
    }

    fn fitting(&self, id: CrewId, step: u64, numbers: Vec<f64>) -> Option<Total> {
        let (crew, kept) = (self.crews.get(&id)?, self.crew_job(id)?.checkpoint.step);
        let (steps, every) = (crew.plan.steps, crew.keep_every);
        let reach = kept.saturating_add(every.saturating_mul(MAX_AHEAD));
        let due = step == steps
            || every > 0 && step < steps && step.is_multiple_of(every) && step <= reach;
        let fits = crew.plan.totals.is_some_and(|totals| totals.numbers == numbers.len());
        Total::new(step, numbers).filter(|_| fits && due)
    }

    fn record_total(&mut self, id: CrewId, total: Total) {
        let Some(job) = self.job_of(id) else { return };
        let (step, numbers) = (total.step, total.numbers.clone());
        self.record(Fact::Total { job, step, numbers });
        if let Some(known) = self.jobs.get_mut(&job) {
            known.total = Some(total);
        }
    }
}
