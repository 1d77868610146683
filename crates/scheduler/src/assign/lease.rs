//! Lending units and taking them back.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use shoal_protocol::limit::LOST_AFTER;
use shoal_protocol::{Attempt, JobId, Lease, NodeId, Span, Time, ToNode};

use super::fit::Cut;
use crate::Output;
use crate::loans::Loan;
use crate::state::{Conn, Scheduler};
use crate::unit::History;

impl Scheduler {
    /// The job and items of a live attempt; `None` if its answer would change nothing.
    pub fn lease(&self, attempt: Attempt) -> Option<(JobId, Span)> {
        let lent = self.loans.get(&attempt).map(|loan| (loan.job, loan.span));
        lent.or_else(|| self.crew_lease(attempt).map(|(job, rows, _)| (job, rows)))
    }

    /// The connection a live attempt is lent to: nobody else may answer it.
    pub fn holder(&self, attempt: Attempt) -> Option<Conn> {
        let lent = self.loans.get(&attempt).and_then(|loan| self.conn_of(loan.node));
        lent.or_else(|| self.crew_lease(attempt).map(|(_, _, conn)| conn))
    }

    /// The job and items of an attempt that is lent to whoever is on this connection.
    pub fn lease_on(&self, conn: Conn, attempt: Attempt) -> Option<(JobId, Span)> {
        if let Some(loan) = self.loans.get(&attempt) {
            let theirs = self.peers.on(conn) == Some(loan.node);
            return theirs.then_some((loan.job, loan.span));
        }
        let (job, rows, holder) = self.crew_lease(attempt)?;
        (holder == conn).then_some((job, rows))
    }

    pub(crate) fn lend(&mut self, now: Time, node: NodeId, cut: Cut) -> Lease {
        let attempt = self.next_attempt();
        let Cut { job, span, .. } = cut;
        self.tell(node, job);
        self.start_loan(now, node, attempt, cut);
        Lease { attempt, job, span }
    }

    /// Says again whether a unit wants a copy lent, and whether its job has anything to lend.
    pub(crate) fn refresh(&mut self, id: JobId, start: u64) {
        if self.jobs.note_unit(id, start) {
            self.review.wake();
        }
    }

    /// What a job is, once per connection.
    pub(crate) fn tell(&mut self, node: NodeId, id: JobId) {
        let (Some(peer), Some(job)) = (self.peers.get_mut(&node), self.jobs.get_mut(&id)) else {
            return;
        };
        let known = !peer.told.insert(id);
        if known && !peer.forgot.remove(&id) {
            return;
        }
        job.told.insert(node);
        let spec = &job.spec;
        let message = ToNode::Job {
            job: id,
            name: spec.name.clone(),
            owner: spec.owner.clone(),
            items: spec.items,
            work: Box::new(spec.work.work()),
            limits: spec.limits,
            takes: spec.needs.takes,
            signed: spec.signed,
        };
        self.outputs.push_back(Output::Send { conn: peer.conn, message });
    }

    /// Ends loans without an answer and tells their holders to stop.
    pub(crate) fn revoke(&mut self, attempts: &[Attempt]) {
        let mut by_conn: BTreeMap<_, Vec<Attempt>> = BTreeMap::new();
        for attempt in attempts {
            let Some(loan) = self.end_loan(*attempt) else { continue };
            if let Some(peer) = self.peers.get(&loan.node) {
                by_conn.entry(peer.conn).or_default().push(*attempt);
            }
        }
        for (conn, attempts) in by_conn {
            self.outputs.push_back(Output::Send { conn, message: ToNode::Revoke(attempts) });
        }
    }

    /// A node vanished, stalled or handed units back: they wait for others.
    pub(crate) fn give_back(&mut self, now: Time, attempts: &[Attempt], blame: bool) {
        for attempt in attempts {
            let Some(loan) = self.end_loan(*attempt) else { continue };
            if !self.jobs.is_running(loan.job) {
                continue;
            }
            if blame {
                self.vanished(now, &loan);
            }
            if let Some(history) = self.history(&loan) {
                history.drop_by(loan.node);
            }
            if !self.end_if_hopeless(now, loan.job, loan.unit) {
                self.wait_again(now, &loan);
            }
        }
    }

    pub(super) fn history(&mut self, loan: &Loan) -> Option<&mut History> {
        let unit = self.jobs.get_mut(&loan.job)?.units.get_mut(&loan.unit)?;
        Some(&mut unit.history)
    }

    /// A copy came back without an answer.
    pub(super) fn wait_again(&mut self, now: Time, loan: &Loan) {
        if let Some(job) = self.jobs.get_mut(&loan.job) {
            job.retries += 1;
        }
        self.refresh(loan.job, loan.unit);
        self.judge(now, loan.job, loan.unit);
    }

    /// Leases a node does not name never reached it, or their answers never came back.
    pub(crate) fn note_lost(
        &mut self,
        now: Time,
        node: NodeId,
        running: &[Attempt],
        queued: &[Attempt],
    ) {
        let named: BTreeSet<_> = running.iter().chain(queued).collect();
        let Some(peer) = self.peers.get(&node) else { return };
        let lost = peer.loans().iter().filter(|attempt| {
            let old = self.loans.get(attempt).is_some_and(|loan| now > loan.since + LOST_AFTER);
            old && !named.contains(attempt)
        });
        let lost: Vec<_> = lost.copied().collect();
        if !lost.is_empty() {
            self.broke(now, node);
            self.tell_again(node, &lost);
            self.give_back(now, &lost, false);
            self.feed_hungry(now);
        }
    }

    /// The node may not know these units' jobs: the next lease tells it again.
    pub(crate) fn tell_again(&mut self, node: NodeId, attempts: &[Attempt]) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        for attempt in attempts {
            let Some(loan) = self.loans.get(attempt) else { continue };
            peer.forgot.insert(loan.job);
        }
    }
}
