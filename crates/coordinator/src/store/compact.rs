//! Shortening the log: what it says of jobs that were removed is of no use to anybody, but for what their
//! answers say of the nodes that gave them. That is said again at the end, in a fact for each node.

use std::collections::{HashMap, HashSet};

use shoal_protocol::{JobId, NodeId};
use shoal_scheduler::{Fact, Scheduler};

use super::facts::Facts;
use crate::options::OpenError;

/// Fewer useless facts than this are not worth writing the log anew.
const WORTH_IT: u64 = 10_000;

pub(crate) fn compact(facts: &mut Facts) -> Result<(), OpenError> {
    let mut log = facts.log();
    let mut found = Found::default();
    for fact in log.by_ref() {
        found.count(&fact);
    }
    log.end()?;
    let useless = found.useless();
    if useless < WORTH_IT {
        return Ok(());
    }
    tracing::info!(useless, "shortening the log of facts");
    let mut log = facts.log();
    let before = Scheduler::replay(log.by_ref());
    log.end()?;
    let mut passed = None;
    facts.rewrite(
        |fact, kept| {
            if matches!(fact, Fact::Passed { .. }) {
                // Only the last one before a merge says anything.
                passed = Some(fact);
            } else if found.keep(&fact) {
                if matches!(fact, Fact::Merged { .. }) {
                    kept.extend(passed.take());
                }
                kept.push(fact);
            }
        },
        before.trust_facts().chain(before.seen_facts()),
    )
}

/// What there is in a log.
#[derive(Default)]
struct Found {
    /// Facts of each job.
    jobs: HashMap<JobId, u64>,
    removed: HashSet<JobId>,
    last: Option<JobId>,
    /// How often each node's class was said; counts down as the log is written anew.
    classes: HashMap<NodeId, u64>,
    /// How often each crew's epoch and its checkpoint were said: only the last of each counts.
    epochs: HashMap<JobId, u64>,
    checkpoints: HashMap<JobId, u64>,
    totals: HashMap<JobId, u64>,
    proven: HashMap<JobId, u64>,
    /// How often it was said whether a node keeps a service ready: only the last time counts.
    replicas: HashMap<(JobId, NodeId), u64>,
    /// How often its crew was: only the last one counts.
    service_crews: HashMap<JobId, u64>,
    /// The last checkpoint's step: pokes before it are in it.
    kept: HashMap<JobId, u64>,
    /// How often each node was seen.
    seen: HashMap<NodeId, u64>,
}

impl Found {
    fn count(&mut self, fact: &Fact) {
        if let Some(said) = self.said(fact) {
            *said += 1;
        }
        if let Fact::Removed { job } | Fact::Unserved { service: job } = fact {
            self.removed.insert(*job);
        }
        if let Fact::Checkpoint { job, step, .. } = fact {
            self.kept.insert(*job, *step);
        }
        if let Fact::Seen { node, .. } = fact {
            *self.seen.entry(*node).or_default() += 1;
        }
        if let Some(job) = job_of(fact) {
            *self.jobs.entry(job).or_default() += 1;
            self.last = self.last.max(Some(job));
        }
    }

    /// Facts that would go, at least: moments that passed, pokes, replicas that ended and what was said of trust are
    /// not counted.
    fn useless(&self) -> u64 {
        let classes: u64 = self.classes.values().map(|said| said - 1).sum();
        let jobs: u64 = self.removed.iter().filter_map(|job| self.jobs.get(job)).sum();
        let crews = self.epochs.iter().chain(&self.checkpoints).chain(&self.totals);
        let crews = crews.chain(&self.proven).chain(&self.service_crews);
        let replicas = self.replicas.iter().map(|((service, _), said)| (service, said));
        let stale = crews.chain(replicas).filter(|(job, _)| !self.removed.contains(job));
        let seen: u64 = self.seen.values().map(|said| said - 1).sum();
        classes + seen + jobs + stale.map(|(_, said)| said - 1).sum::<u64>()
    }

    /// How often what a fact says was said, if only the last time counts.
    fn said(&mut self, fact: &Fact) -> Option<&mut u64> {
        match fact {
            Fact::Class { node, .. } => Some(self.classes.entry(*node).or_default()),
            Fact::Epoch { job, .. } => Some(self.epochs.entry(*job).or_default()),
            Fact::Checkpoint { job, .. } => Some(self.checkpoints.entry(*job).or_default()),
            Fact::Total { job, .. } => Some(self.totals.entry(*job).or_default()),
            Fact::Proven { job, .. } => Some(self.proven.entry(*job).or_default()),
            Fact::Replica { service, node, .. } => {
                Some(self.replicas.entry((*service, *node)).or_default())
            }
            Fact::ServiceCrew { service, .. } => {
                Some(self.service_crews.entry(*service).or_default())
            }
            Fact::Life { .. }
            | Fact::Node { .. }
            | Fact::Submitted { .. }
            | Fact::Merged { .. }
            | Fact::FailedItems { .. }
            | Fact::Finished { .. }
            | Fact::Failed { .. }
            | Fact::Cancelled { .. }
            | Fact::Removed { .. }
            | Fact::Unmerged { .. }
            | Fact::Checked { .. }
            | Fact::Passed { .. }
            | Fact::Rejected { .. }
            | Fact::Trust { .. }
            | Fact::Numbered { .. }
            | Fact::Seen { .. }
            | Fact::Serves { .. }
            | Fact::Unserved { .. }
            | Fact::Poked { .. } => None,
        }
    }

    /// To be asked of every fact in order.
    fn keep(&mut self, fact: &Fact) -> bool {
        if let Some(left) = self.said(fact) {
            *left = left.saturating_sub(1);
            if *left > 0 {
                return false;
            }
        }
        if let Fact::Poked { job, step, .. } = fact
            && self.kept.get(job).is_some_and(|kept| step < kept)
        {
            return false;
        }
        match (fact, job_of(fact)) {
            // The newest job's number must stay taken, also when it is gone.
            (
                Fact::Submitted { .. }
                | Fact::Removed { .. }
                | Fact::Serves { .. }
                | Fact::Unserved { .. },
                Some(job),
            ) if Some(job) == self.last => true,
            // What was said before it is gone as well.
            (Fact::Replica { on: false, .. }, Some(_)) => false,
            (_, Some(job)) => !self.removed.contains(&job),
            // All are said again at the end.
            (Fact::Trust { .. } | Fact::Seen { .. }, None) => false,
            (_, None) => true,
        }
    }
}

fn job_of(fact: &Fact) -> Option<JobId> {
    match fact {
        Fact::Life { .. }
        | Fact::Node { .. }
        | Fact::Passed { .. }
        | Fact::Class { .. }
        | Fact::Numbered { .. }
        | Fact::Seen { .. }
        | Fact::Trust { .. } => None,
        Fact::Submitted { job, .. }
        | Fact::Merged { job, .. }
        | Fact::FailedItems { job, .. }
        | Fact::Finished { job, .. }
        | Fact::Failed { job, .. }
        | Fact::Cancelled { job, .. }
        | Fact::Removed { job }
        | Fact::Unmerged { job, .. }
        | Fact::Checked { job, .. }
        | Fact::Rejected { job, .. }
        | Fact::Epoch { job, .. }
        | Fact::Checkpoint { job, .. }
        | Fact::Proven { job, .. }
        | Fact::Poked { job, .. }
        | Fact::Total { job, .. } => Some(*job),
        Fact::Serves { service, .. }
        | Fact::Unserved { service }
        | Fact::Replica { service, .. }
        | Fact::ServiceCrew { service, .. } => Some(*service),
    }
}

#[cfg(test)]
mod tests;
