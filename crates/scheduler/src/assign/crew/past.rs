//! What happened to a crew. While the coordinator lives it knows who left and why; from facts alone it is known
//! when crews were called together, from which step they went on, and how far their checkpoints came.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Epoch, JobId, Time};

use super::CrewChange;
use crate::job::Job;
use crate::state::Scheduler;

/// What is told of a crew's past.
const MAX_CHANGES: usize = 64;
/// Begins what is said of checkpoints: of an epoch only the last is told.
const STORED: &str = "all rows were stored after step ";

impl Scheduler {
    pub(crate) fn note_change(&mut self, now: Time, job: JobId, what: String) {
        let Some(epoch) = self.jobs.get(&job).map(|job| job.kept.epoch) else { return };
        let Some(crew) = self.crews.get_mut(&job) else { return };
        push(&mut crew.changes, CrewChange { at: now, epoch, what });
    }

    /// In a new life the crew has the past that facts tell.
    pub(super) fn recall(&mut self, now: Time, job: JobId) {
        let past = self.jobs.get_mut(&job).map(|job| core::mem::take(&mut job.past));
        if let (Some(crew), Some(past)) = (self.crews.get_mut(&job), past) {
            crew.changes = past;
        }
        let what = "the coordinator started again; of before only facts are known";
        self.note_change(now, job, String::from(what));
    }
}

impl Job {
    /// Replayed: a crew was called together.
    pub(crate) fn recall_epoch(&mut self, at: Time, epoch: Epoch) {
        let what = format!("a crew computed from step {} on", self.kept.step);
        push(&mut self.past, CrewChange { at: at.max(self.submitted), epoch, what });
    }

    /// Replayed: a checkpoint was whole, or was found to be lost.
    pub(crate) fn recall_kept(&mut self, at: Time, step: u64) {
        let (at, epoch) = (at.max(self.submitted), self.kept.epoch);
        let what = match step {
            0 => String::from("its checkpoint was lost: it begins again"),
            step => format!("{STORED}{step}"),
        };
        let is_older = |last: &mut CrewChange| {
            last.epoch == epoch && step > 0 && last.what.starts_with(STORED)
        };
        self.past.pop_if(is_older);
        push(&mut self.past, CrewChange { at, epoch, what });
    }
}

fn push(changes: &mut Vec<CrewChange>, change: CrewChange) {
    if changes.len() >= MAX_CHANGES {
        changes.remove(0);
    }
    changes.push(change);
}
