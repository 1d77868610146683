//! Lending units, taking them back, and giving up on those that fail everywhere.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::{FAIL_ON_NODES, LOST_AFTER, MAX_TRIES, OVERTIME, SILENCE};
use shoal_protocol::{
    Attempt, Failure, JobId, Lane, Lease, LimitKind, Micros, NodeId, Span, Time, ToNode,
};

use super::fit::Unit;
use crate::Output;
use crate::state::{Again, Conn, History, Loan, Scheduler};

/// A unit that was too large is cut this much smaller before anybody is blamed.
const SIZE_CUT: u64 = 4;
/// A unit not begun after this many times its own limit never will be.
const WAITS_FOR: u64 = 3;
/// Failures that are the node's own (device lost, no memory) a unit is allowed on its only node.
const NODE_FAULTS: u32 = 3;

impl Scheduler {
    /// The job and items of a live attempt; `None` if its answer would change nothing.
    pub fn lease(&self, attempt: Attempt) -> Option<(JobId, Span)> {
        self.loans.get(&attempt).map(|loan| (loan.job, loan.span))
    }

    /// The connection a live attempt is lent to: nobody else may answer it.
    pub fn holder(&self, attempt: Attempt) -> Option<Conn> {
        let loan = self.loans.get(&attempt)?;
        self.peers.get(&loan.node).map(|peer| peer.conn)
    }

    pub(crate) fn lend(&mut self, now: Time, node: NodeId, unit: Unit) -> Lease {
        let attempt = self.next_attempt();
        let Unit { job, span, .. } = unit;
        self.tell(node, job);
        self.start_loan(now, node, attempt, unit);
        Lease { attempt, job, span }
    }

    /// Books a loan; the span has been cut out of what waits.
    pub(crate) fn start_loan(&mut self, now: Time, node: NodeId, attempt: Attempt, unit: Unit) {
        let Unit { job: id, lane, span, expected, history } = unit;
        if let Some(job) = self.jobs.get_mut(&id) {
            self.ready.remove(&(job.served, id));
            job.served = job.served.saturating_add(expected.0.max(1));
            job.first_lent.get_or_insert(now);
            job.items_leased += span.len;
            job.leased.insert(attempt);
            if job.left() > 0 {
                self.ready.insert((job.served, id));
            }
        }
        if let Some(peer) = self.peers.get_mut(&node) {
            if peer.loans.is_empty() && peer.timer > now + SILENCE {
                self.timers.remove(&(peer.timer, node));
                peer.timer = now + SILENCE;
                self.timers.insert((peer.timer, node));
                peer.heard = now;
            }
            peer.loans.insert(attempt);
            let load = &mut peer.lanes[lane as usize];
            load.units += 1;
            load.expected = Micros(load.expected.0.saturating_add(expected.0));
        }
        let loan = Loan { job: id, span, node, lane, since: now, running: None, expected, history };
        self.loans.insert(attempt, loan);
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
            work: Box::new(spec.work.clone()),
            limits: spec.limits,
        };
        self.outputs.push_back(Output::Send { conn: peer.conn, message });
    }

    /// Ends the booking of a loan, whatever its outcome.
    pub(crate) fn end_loan(&mut self, attempt: Attempt) -> Option<Loan> {
        let loan = self.loans.remove(&attempt)?;
        if let Some(peer) = self.peers.get_mut(&loan.node) {
            peer.loans.remove(&attempt);
            let load = &mut peer.lanes[loan.lane as usize];
            load.units -= 1;
            load.expected = Micros(load.expected.0.saturating_sub(loan.expected.0));
            if peer.loans.is_empty() {
                load.expected = Micros(0);
            }
        }
        if let Some(job) = self.jobs.get_mut(&loan.job) {
            job.leased.remove(&attempt);
            job.items_leased -= loan.span.len;
        }
        Some(loan)
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
            if !self.is_running(loan.job) {
                continue;
            }
            let mut history = loan.history;
            if blame && loan.running.is_some() {
                history.tries += 1;
            }
            if history.tries >= MAX_TRIES {
                let message = format!("{MAX_TRIES} nodes vanished while they computed it");
                let failure = Failure::Internal { message };
                self.fail(now, loan.job, loan.span, &history, loan.node, failure);
                continue;
            }
            self.wait_again(loan.job, loan.span, history);
        }
    }

    pub(crate) fn failed(&mut self, now: Time, node: NodeId, attempt: Attempt, failure: Failure) {
        let failure = failure.clipped();
        let ours = self.loans.get(&attempt).is_some_and(|loan| loan.node == node);
        if !ours {
            return;
        }
        let Some(loan) = self.end_loan(attempt) else { return };
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.units_failed += 1;
            peer.last_job = Some(loan.job);
        }
        if self.shrinks_instead(&loan, &failure) {
            self.wait_again(loan.job, loan.span, loan.history);
            return;
        }
        let mut history = loan.history;
        history.tries += 1;
        if !history.failed_on.contains(&node) {
            history.failed_on.push(node);
        }
        if self.is_hopeless(loan.job, &history, &failure) {
            self.fail(now, loan.job, loan.span, &history, node, failure);
        } else {
            self.wait_again(loan.job, loan.span, history);
        }
    }

    /// A large unit out of time, or with more answers than a node can hold, says more about its size than
    /// about its job.
    fn shrinks_instead(&mut self, loan: &Loan, failure: &Failure) -> bool {
        let Failure::Limit { which, item: None, .. } = failure else { return false };
        let too_large = match which {
            LimitKind::Time => loan.lane == Lane::Gpu,
            LimitKind::Output => true,
            LimitKind::Memory => false,
        };
        let Some(job) = self.jobs.get_mut(&loan.job) else { return false };
        if !too_large || loan.span.len <= 1 {
            return false;
        }
        // Even the first unit may be too long; then only single items can tell whether the job is at fault.
        let grain = job.spec.sizing.grain;
        let smaller = (loan.span.len / SIZE_CUT).max(grain);
        job.size_cap = if loan.span.len > grain { smaller } else { 1 };
        true
    }

    fn is_hopeless(&self, id: JobId, history: &History, failure: &Failure) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let nodes = history.failed_on.len();
        let nobody_else = self.able_besides(job, &history.failed_on) == 0;
        let enough_nodes = nodes >= FAIL_ON_NODES || nobody_else;
        let enough_tries = failure.blames_job() || history.tries >= NODE_FAULTS;
        (enough_nodes && enough_tries) || history.tries >= MAX_TRIES
    }

    fn wait_again(&mut self, id: JobId, span: Span, history: History) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.retries += 1;
        job.again.push_back(Again { span, history });
        self.ready.insert((job.served, id));
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
        let lost = peer.loans.iter().filter(|attempt| {
            let old = self.loans.get(attempt).is_some_and(|loan| now > loan.since + LOST_AFTER);
            old && !named.contains(attempt)
        });
        let lost: Vec<_> = lost.copied().collect();
        if !lost.is_empty() {
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

    /// The node says what it computes and what waits there: a unit far over its time has failed, whether or
    /// not the node admits it.
    pub(crate) fn note_late(
        &mut self,
        now: Time,
        node: NodeId,
        running: &[Attempt],
        queued: &[Attempt],
    ) {
        for attempt in running {
            if let Some(loan) = self.loans.get_mut(attempt)
                && loan.node == node
            {
                loan.running.get_or_insert(now);
            }
        }
        let held = running.iter().chain(queued).copied();
        let late: Vec<_> = held.filter(|attempt| self.is_late(now, node, *attempt)).collect();
        if late.is_empty() {
            return;
        }
        if let Some(peer) = self.peers.get(&node) {
            let message = ToNode::Revoke(late.clone());
            self.outputs.push_back(Output::Send { conn: peer.conn, message });
        }
        for attempt in late {
            let limit = self.loans.get(&attempt).and_then(|loan| self.jobs.get(&loan.job));
            let allowed = limit.map_or(0, |job| job.spec.limits.time.0);
            let which = LimitKind::Time;
            let stderr = String::new();
            let failure = Failure::Limit { item: None, which, allowed, stderr };
            self.failed(now, node, attempt, failure);
        }
        self.feed_hungry(now);
    }

    fn is_late(&self, now: Time, node: NodeId, attempt: Attempt) -> bool {
        let Some(loan) = self.loans.get(&attempt) else { return false };
        let Some(job) = self.jobs.get(&loan.job) else { return false };
        // Programs have their limit for each item, kernels for the unit.
        let runs = if loan.lane == Lane::Cpu { loan.span.len } else { 1 };
        let limit = job.spec.limits.time.0.saturating_mul(runs);
        // A unit waits at most for those lent before it.
        let (since, allowed) = match loan.running {
            Some(running) => (running, limit),
            None => (loan.since, limit.saturating_mul(WAITS_FOR)),
        };
        loan.node == node && (now - since).0 > allowed.saturating_add(OVERTIME.0)
    }
}
