//! Units lent to this node: queued, taken back, handed back.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{Attempt, Failure, FromNode, JobId, Lease};

use crate::Output;
use crate::consent::Consent;
use crate::state::{JobInfo, Node};

impl Node {
    pub(crate) fn lent(&mut self, leases: Vec<Lease>) {
        let (mut refused, mut failed) = (Vec::new(), Vec::new());
        for lease in leases {
            // The network may say things twice.
            if lease.attempt <= self.newest && self.has(lease.attempt) {
                continue;
            }
            self.newest = self.newest.max(lease.attempt);
            let full = self.units_held() >= MAX_LEASES_PER_NODE;
            match self.jobs.get(&lease.job) {
                Some(JobInfo { consent: Consent::Bad(message), .. }) => {
                    failed.push((lease.attempt, message.clone()));
                }
                // What is beyond the donor's means even alone would wait for ever.
                Some(job) if !self.config.caps.holds(&job.takes) => refused.push(lease.attempt),
                Some(job) if !full && !self.paused && job.consent != Consent::Declined => {
                    self.queues[job.lane()].push_back(lease);
                }
                // Told again what the job is, or that this node is paused, the coordinator does better.
                Some(_) | None => refused.push(lease.attempt),
            }
        }
        for (attempt, message) in failed {
            self.send(FromNode::Failed { attempt, failure: Failure::Signature { message } });
        }
        if !refused.is_empty() && self.paused {
            self.send(FromNode::Pause(true));
        }
        if !refused.is_empty() {
            self.send(FromNode::Returned(refused));
        }
        self.begin_all();
    }

    pub(crate) fn revoked(&mut self, attempts: &[Attempt]) {
        let attempts: alloc::collections::BTreeSet<_> = attempts.iter().copied().collect();
        for queue in self.queues.values_mut() {
            queue.retain(|lease| !attempts.contains(&lease.attempt));
        }
        self.finished.retain(|answer| !attempts.contains(&answer.finished.attempt));
        self.revoke_calls(&attempts);
        for attempt in &attempts {
            if self.running.remove(attempt).is_some() {
                self.outputs.push_back(Output::Abort(*attempt));
            }
        }
        self.begin_all();
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        let Some(info) = self.jobs.remove(&job) else { return };
        self.elsewhere.note(job, &info);
        for queue in self.queues.values_mut() {
            queue.retain(|lease| lease.job != job);
        }
        self.finished.retain(|answer| answer.job != job);
        let running = self.running.iter().filter(|(_, running)| running.job == job);
        let running: Vec<_> = running.map(|(attempt, _)| *attempt).collect();
        for attempt in running {
            self.running.remove(&attempt);
            self.outputs.push_back(Output::Abort(attempt));
        }
        self.leave_crews(Some(job));
        self.end_service(job);
        self.outputs.push_back(Output::Forget(job));
    }

    /// Units not begun go back, so that others can do them now.
    pub(crate) fn hand_back(&mut self) {
        let queued = self.queues.values_mut().flat_map(|queue| queue.drain(..));
        let attempts: Vec<_> = queued.map(|lease| lease.attempt).collect();
        if self.is_joined() && !attempts.is_empty() {
            self.send(FromNode::Returned(attempts));
        }
    }

    fn has(&self, attempt: Attempt) -> bool {
        self.running.contains_key(&attempt)
            || self.queues.values().flatten().any(|lease| lease.attempt == attempt)
            || self.finished.iter().any(|answer| answer.finished.attempt == attempt)
    }

    fn units_held(&self) -> usize {
        self.running.len() + self.queues.values().map(|queue| queue.len()).sum::<usize>()
    }
}
