//! What happened to a crew. While the coordinator lives it knows who left and why; from facts alone it is known
//! when crews were called together, from which step they went on, and how far their checkpoints came.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use shoal_protocol::{CrewId, Epoch, JobId, Time};

use super::CrewChange;
use crate::job::Job;
use crate::state::Scheduler;

/// What is told of a crew's past.
const MAX_CHANGES: usize = 64;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrewEvent {
    /// A crew was called together to go on from this step.
    Called { from: u64 },
    /// A checkpoint was whole after this step.
    Stored { step: u64 },
    /// It was found to be lost.
    Lost,
    /// In words: who left and why, who was called.
    Said(String),
}

impl fmt::Display for CrewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrewEvent::Called { from } => write!(f, "a crew computed from step {from} on"),
            CrewEvent::Stored { step } => write!(f, "all rows were stored after step {step}"),
            CrewEvent::Lost => f.write_str("its checkpoint was lost: it begins again"),
            CrewEvent::Said(words) => f.write_str(words),
        }
    }
}

impl Scheduler {
    pub(crate) fn note_change(&mut self, now: Time, id: CrewId, what: String) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let what = CrewEvent::Said(what);
        push(&mut crew.changes, CrewChange { at: now, epoch: crew.epoch, what });
    }

    /// In a new life the crew has the past that facts tell.
    pub(super) fn recall(&mut self, now: Time, job: JobId) {
        let (Some(id), Some(known)) = (self.crew_of(job), self.jobs.get_mut(&job)) else { return };
        let (past, epoch) = (core::mem::take(&mut known.past), known.checkpoint.epoch);
        if let Some(crew) = self.crews.get_mut(&id) {
            (crew.changes, crew.epoch) = (past, epoch);
        }
        let what = "the coordinator started again; of before only facts are known";
        self.note_change(now, id, String::from(what));
    }
}

impl Job {
    /// Replayed: a crew was called together.
    pub(crate) fn recall_epoch(&mut self, at: Time, epoch: Epoch) {
        let what = CrewEvent::Called { from: self.checkpoint.step };
        push(&mut self.past, CrewChange { at: at.max(self.submitted), epoch, what });
    }

    /// Replayed: a checkpoint was whole, or was found to be lost.
    pub(crate) fn recall_kept(&mut self, at: Time, step: u64) {
        let (at, epoch) = (at.max(self.submitted), self.checkpoint.epoch);
        let what = match step {
            0 => CrewEvent::Lost,
            step => CrewEvent::Stored { step },
        };
        // Of an epoch only the last checkpoint is told.
        let is_older = |last: &mut CrewChange| {
            last.epoch == epoch && step > 0 && matches!(last.what, CrewEvent::Stored { .. })
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
