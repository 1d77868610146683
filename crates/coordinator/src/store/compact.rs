//! Shortening the log: what it says of jobs that were removed is of no use to anybody.

use std::collections::{HashMap, HashSet};

use shoal_protocol::JobId;
use shoal_scheduler::Fact;

use super::facts::Facts;
use crate::options::OpenError;

/// Fewer useless facts than this are not worth writing the log anew.
const WORTH_IT: u64 = 10_000;

pub(crate) fn compact(facts: &mut Facts) -> Result<(), OpenError> {
    let mut counts: HashMap<JobId, u64> = HashMap::new();
    let mut removed = HashSet::new();
    // What nodes are worth follows from these, so they are never of no use.
    let mut judged = HashSet::new();
    let mut last = JobId(0);
    let mut log = facts.log();
    for fact in log.by_ref() {
        let Some(job) = job_of(&fact) else { continue };
        *counts.entry(job).or_default() += 1;
        last = last.max(job);
        if matches!(fact, Fact::Removed { .. }) {
            removed.insert(job);
        }
        if matches!(fact, Fact::Checked { .. } | Fact::Rejected { .. }) {
            judged.insert(job);
        }
    }
    log.end()?;
    removed.retain(|job| !judged.contains(job));
    let useless: u64 = removed.iter().filter_map(|job| counts.get(job)).sum();
    if useless < WORTH_IT {
        return Ok(());
    }
    tracing::info!(useless, "shortening the log of facts");
    facts.rewrite(|fact| match job_of(fact) {
        // The newest job's number must stay taken, also when it is gone.
        Some(job) if job == last && removed.contains(&job) => {
            matches!(fact, Fact::Submitted { .. } | Fact::Removed { .. })
        }
        Some(job) => !removed.contains(&job),
        None => true,
    })
}

fn job_of(fact: &Fact) -> Option<JobId> {
    match fact {
        Fact::Life { .. }
        | Fact::Node { .. }
        | Fact::Passed { .. }
        | Fact::Class { .. }
        | Fact::Trust { .. } => None,
        Fact::Submitted { job, .. }
        | Fact::Merged { job, .. }
        | Fact::Finished { job, .. }
        | Fact::Failed { job, .. }
        | Fact::Cancelled { job, .. }
        | Fact::Removed { job }
        | Fact::Unmerged { job, .. }
        | Fact::Checked { job, .. }
        | Fact::Rejected { job, .. } => Some(*job),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::facts::Batch;
    use shoal_protocol::{
        JobSpec, Lane, Limits, Needs, NodeId, Policy, Sizing, Span, Strategy, Time, Work,
    };
    use shoal_scheduler::{Input, Output, RequestId, Scheduler};

    fn submitted(job: u64) -> Fact {
        let spec = JobSpec {
            name: "job".into(),
            owner: "owner".into(),
            work: Work::Noop,
            items: 20_000,
            sizing: Sizing::fixed(1),
            strategy: Strategy::Adaptive,
            needs: Needs::lane(Lane::Inline),
            limits: Limits::default(),
            policy: Policy::default(),
            signed: None,
        };
        Fact::Submitted { job: JobId(job), at: Time(1), spec: Box::new(spec) }
    }

    fn merged(job: u64, item: u64) -> Fact {
        let (job, span) = (JobId(job), Span::new(item, 1));
        Fact::Merged { job, span, node: NodeId(1), place: None }
    }

    #[test]
    fn facts_of_removed_jobs_go_and_the_rest_stays() {
        let dir = std::env::temp_dir().join(format!("shoal-compact-{}", std::process::id()));
        let _ = std::fs::remove_file(&dir);
        let mut facts = Facts::open(&dir).unwrap();
        for job in 1..=3 {
            let all = std::iter::once(submitted(job)).chain((0..6_000).map(|i| merged(job, i)));
            let end = [Fact::Cancelled { job: JobId(job), at: Time(2) }];
            let batch = Batch { facts: all.chain(end).collect(), ..Batch::default() };
            facts.write(&batch).unwrap();
        }
        let gone = [Fact::Removed { job: JobId(1) }, Fact::Removed { job: JobId(3) }];
        facts.write(&Batch { facts: gone.into(), ..Batch::default() }).unwrap();
        compact(&mut facts).unwrap();
        assert_eq!(facts.log().count(), 6_002 + 2);
        let mut scheduler = Scheduler::replay(facts.log());
        assert_eq!(scheduler.job(Time(3), JobId(2)).unwrap().items_done, 6_000);
        assert!(scheduler.job(Time(3), JobId(3)).is_none());
        scheduler.handle(Time(3), Input::Start { seed: 1 });
        let request = RequestId(1);
        let Fact::Submitted { spec, .. } = submitted(9) else { unreachable!() };
        scheduler.handle(Time(3), Input::Submit { request, spec: *spec });
        let outputs = std::iter::from_fn(|| scheduler.poll_output());
        let mut replies = outputs.filter_map(|output| {
            let Output::Reply { result, .. } = output else { return None };
            Some(result)
        });
        assert_eq!(replies.next(), Some(Ok(JobId(4))));
        drop(facts);
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", dir.display()));
        }
    }
}
