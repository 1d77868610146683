//! How far a crew's steps are proven, as facts and in words.

use alloc::format;
use alloc::string::String;
use shoal_protocol::{JobId, Time, Verify};

use crate::fact::Fact;
use crate::state::Scheduler;

impl Scheduler {
    /// In a new life nobody knows who computed what lies behind the last proven step.
    pub(super) fn recall_proven(&mut self, now: Time, job: JobId) {
        let Some(known) = self.jobs.get(&job) else { return };
        let (proven, kept) = (known.proven, known.checkpoint.step);
        if known.spec.policy.verify != Verify::None && kept > proven {
            let why = "the coordinator started again before somebody could compute them again";
            self.note_proven(now, job, (proven, kept), Some(why));
        }
    }

    pub(super) fn note_proven(
        &mut self,
        now: Time,
        job: JobId,
        (from, to): (u64, u64),
        unsure: Option<&str>,
    ) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let first = known.unchecked == 0;
        known.proven = to;
        known.unchecked += if unsure.is_some() { to - from } else { 0 };
        let (step, unchecked) = (to, known.unchecked);
        self.record(Fact::Proven { job, step, unchecked });
        if let (Some(why), true, Some(id)) = (unsure, first, self.crew_of(job)) {
            let what = format!(
                "steps {from} to {to} are not checked: {why}; later ones like them are only counted"
            );
            self.note_change(now, id, what);
        }
    }
}

/// What is said of a crew whose rows were not all checked, in words.
pub(crate) fn unchecked_words(steps: u64) -> String {
    format!("{steps} steps were computed by other people's devices and not checked")
}
