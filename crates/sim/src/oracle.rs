//! What must hold in every world, seen from outside the scheduler.

use std::collections::{BTreeMap, BTreeSet};

use shoal_protocol::{JobId, Span, Time};
use shoal_scheduler::{Fact, JobState, Scheduler};

#[derive(Default)]
pub(crate) struct Oracle {
    /// Merged items by job: start to end.
    merged: BTreeMap<JobId, BTreeMap<u64, u64>>,
    ended: BTreeSet<JobId>,
    pub(crate) units: u64,
}

impl Oracle {
    pub(crate) fn recorded(&mut self, fact: &Fact) {
        if let Fact::Merged { job, span, .. } = fact {
            self.units += 1;
            self.merge(*job, *span);
        }
    }

    pub(crate) fn ended(&mut self, job: JobId) {
        assert!(self.ended.insert(job), "job {job} was delivered twice");
    }

    /// The durable state must be what the facts say.
    pub(crate) fn compare(&self, live: &Scheduler, facts: &[Fact], now: Time) {
        let replayed = Scheduler::replay(facts.iter().cloned());
        replayed.check();
        for job in live.jobs(now) {
            let again = replayed.job(now, job.job).expect("a job got lost in replay");
            assert_eq!(
                (job.state, job.items_done),
                (again.state, again.items_done),
                "job {}",
                job.job
            );
            assert_eq!(live.merged(job.job), replayed.merged(job.job), "job {}", job.job);
        }
    }

    pub(crate) fn all_finished(&self, live: &Scheduler, now: Time, may_fail: bool) {
        for job in live.jobs(now) {
            let done: u64 =
                self.merged.get(&job.job).into_iter().flatten().map(|(s, e)| e - s).sum();
            match job.state {
                JobState::Done => assert_eq!(done, job.items, "job {} is not whole", job.job),
                JobState::Failed if may_fail => {}
                JobState::Running | JobState::Failed | JobState::Cancelled => {
                    panic!("job {} ended as {:?}: {:?}", job.job, job.state, job.failure)
                }
            }
        }
    }

    fn merge(&mut self, job: JobId, span: Span) {
        let merged = self.merged.entry(job).or_default();
        let before =
            merged.range(..=span.start).next_back().is_none_or(|(_, end)| *end <= span.start);
        let after = merged.range(span.start..).next().is_none_or(|(start, _)| *start >= span.end());
        assert!(before && after, "job {job}: items {span} were merged twice");
        merged.insert(span.start, span.end());
    }
}
