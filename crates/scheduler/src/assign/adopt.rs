//! Units a returning node still has. It keeps those that nobody else has; but where answers are checked, nobody
//! chooses what to have a say about: only what was lent to that very node counts.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{Attempt, Held, JobId, Micros, NodeId, Span, Time, ToNode, Verify};

use super::fit::Cut;
use crate::Output;
use crate::state::Scheduler;
use crate::unit::History;

impl Scheduler {
    /// Whether a unit may be in this node's hands.
    fn may_keep(&mut self, node: NodeId, attempt: Attempt, id: JobId, span: Span) -> bool {
        let lent = self.loans.recall(node, attempt) == Some((id, span));
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(peer) = self.peers.get(&node) else { return false };
        let sized = span.len <= job.spec.sizing.most;
        let believed = lent || peer.trusted || job.spec.policy.verify == Verify::None;
        self.jobs.is_running(id)
            && sized
            && believed
            && peer.suits(job)
            && self.has_means(peer, job)
    }

    /// Units a returning node is still at: it keeps those that nobody else has.
    pub(crate) fn adopt(&mut self, now: Time, node: NodeId, held: Vec<Held>) {
        let mut refused = Vec::new();
        for Held { attempt, job: id, span } in held.into_iter().take(MAX_LEASES_PER_NODE) {
            let taken = !self.loans.contains_key(&attempt)
                && self.numbers.was_given(attempt)
                && self.may_keep(node, attempt, id, span)
                && self.reopen(node, id, span);
            if !taken {
                refused.push(attempt);
                continue;
            }
            let lane = self.jobs.get(&id).map(|job| job.spec.needs.lane);
            let Some(lane) = lane else { continue };
            self.tell(node, id);
            let (unit, expected) = (span.start, Micros(0));
            let cut = Cut { job: id, unit, span, lane, expected, extra: false };
            self.start_loan(now, node, attempt, cut);
        }
        if let Some(peer) = self.peers.get(&node)
            && !refused.is_empty()
        {
            let conn = peer.conn;
            self.outputs.push_back(Output::Send { conn, message: ToNode::Revoke(refused) });
        }
    }

    /// Whether a span waits, fresh or as a unit that wants a copy; cuts it out if it is fresh.
    fn reopen(&mut self, node: NodeId, id: JobId, span: Span) -> bool {
        if self.jobs.get(&id).is_some_and(|job| job.units.contains_key(&span.start)) {
            // It is back with the unit in hand: the unit did not end it.
            self.forgive(node, id, span.start);
            let Some(job) = self.jobs.get(&id) else { return false };
            let Some(unit) = job.units.get(&span.start) else { return false };
            let wants = unit.span == span && unit.wants(&job.rules());
            return wants && self.may_take(node, job, unit);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let fresh = job.waiting.take(span);
        if fresh {
            job.open_unit(span, History::default());
        }
        fresh
    }
}
