//! Units lent to this node: queued, taken back, handed back.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::sign::join_statement;
use shoal_protocol::{Attempt, Failure, FromNode, JobId, Lease, Time, ToNode};

use crate::Output;
use crate::consent::Consent;
use crate::state::{JobInfo, Node};

impl Node {
    pub(crate) fn received(&mut self, now: Time, message: ToNode) {
        match message {
            ToNode::Welcome { node, session } => self.welcomed(now, node, session),
            ToNode::Refused(refusal) => self.refused(now, refusal),
            ToNode::Job { job, name, owner, items, work, limits, signed } => {
                let consent = Consent::Asked;
                let work = *work;
                let info = JobInfo {
                    name,
                    owner,
                    items,
                    work,
                    limits,
                    signed,
                    consent,
                    told_declined: false,
                    check_again: false,
                };
                self.told(job, info);
            }
            ToNode::Lend(leases) => self.lent(leases),
            ToNode::Revoke(attempts) => self.revoked(&attempts),
            ToNode::Forget(job) => self.forget(job),
            ToNode::Challenge { nonce, coordinator } => {
                self.coordinator = Some(coordinator);
                self.challenged(join_statement(&coordinator, &nonce));
            }
            ToNode::Audition { crew, job } => self.audition(crew, job),
            ToNode::Enlist(enlist) => self.enlist(enlist),
            ToNode::Dismiss { crew } => self.dismiss(crew),
            ToNode::ToCrew { crew, say } => self.tell_crew(crew, say),
            ToNode::Quic(offer) => self.quic.offered(offer),
            ToNode::Share(told) => self.outputs.push_back(Output::Share(told)),
        }
    }

    fn lent(&mut self, leases: Vec<Lease>) {
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
                Some(job) if !full && !self.paused && job.consent != Consent::Declined => {
                    self.queues[job.lane() as usize].push_back(lease);
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

    fn revoked(&mut self, attempts: &[Attempt]) {
        let attempts: alloc::collections::BTreeSet<_> = attempts.iter().copied().collect();
        for queue in &mut self.queues {
            queue.retain(|lease| !attempts.contains(&lease.attempt));
        }
        self.finished.retain(|answer| !attempts.contains(&answer.finished.attempt));
        for attempt in &attempts {
            if self.running.remove(attempt).is_some() {
                self.outputs.push_back(Output::Abort(*attempt));
            }
        }
        self.begin_all();
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        if self.jobs.remove(&job).is_none() {
            return;
        }
        for queue in &mut self.queues {
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
        self.outputs.push_back(Output::Forget(job));
    }

    /// Units not begun go back, so that others can do them now.
    pub(crate) fn hand_back(&mut self) {
        let queued = self.queues.iter_mut().flat_map(|queue| queue.drain(..));
        let attempts: Vec<_> = queued.map(|lease| lease.attempt).collect();
        if self.is_joined() && !attempts.is_empty() {
            self.send(FromNode::Returned(attempts));
        }
    }

    fn has(&self, attempt: Attempt) -> bool {
        self.running.contains_key(&attempt)
            || self.queues.iter().flatten().any(|lease| lease.attempt == attempt)
            || self.finished.iter().any(|answer| answer.finished.attempt == attempt)
    }

    fn units_held(&self) -> usize {
        self.running.len() + self.queues.iter().map(|queue| queue.len()).sum::<usize>()
    }
}
