//! Units that fail: tried elsewhere, cut smaller, or the end of their job.

use shoal_protocol::limit::{FAIL_ON_NODES, MAX_TRIES};
use shoal_protocol::{Attempt, Failure, Lane, LimitKind, NodeId, Time};

use crate::state::Scheduler;
use crate::unit::Loan;

/// A unit that ran out of time is cut this much smaller before anybody is blamed.
const TIME_CUT: u64 = 4;
/// Failures that are the node's own (device lost, no memory) a unit is allowed on its only node.
const NODE_FAULTS: u32 = 3;

impl Scheduler {
    pub(crate) fn failed(&mut self, now: Time, node: NodeId, attempt: Attempt, failure: Failure) {
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
            self.wait_again(now, &loan);
            return;
        }
        let Some(history) = self.history(&loan) else { return };
        history.tries += 1;
        if !history.failed_on.contains(&node) {
            history.failed_on.push(node);
        }
        if self.is_hopeless(&loan, &failure) {
            self.fail(now, &loan, failure);
        } else {
            self.wait_again(now, &loan);
        }
    }

    /// A large unit out of time says more about its size than about its job.
    fn shrinks_instead(&mut self, loan: &Loan, failure: &Failure) -> bool {
        let out_of_time = matches!(failure, Failure::Limit { which: LimitKind::Time, .. });
        let Some(job) = self.jobs.get_mut(&loan.job) else { return false };
        let grain = job.spec.sizing.grain;
        if !out_of_time || loan.lane != Lane::Gpu || loan.span.len <= grain {
            return false;
        }
        job.size_cap = (loan.span.len / TIME_CUT).max(grain);
        true
    }

    fn is_hopeless(&self, loan: &Loan, failure: &Failure) -> bool {
        let Some(job) = self.jobs.get(&loan.job) else { return false };
        let Some(history) = job.units.get(&loan.unit).map(|unit| &unit.history) else {
            return false;
        };
        if job.units.get(&loan.unit).is_some_and(|unit| unit.ballot.is_some()) {
            // Somebody could compute it: those who cannot only have no say.
            return history.tries >= MAX_TRIES;
        }
        let nodes = history.failed_on.len();
        let nobody_else = self.able_besides(job, &history.failed_on) == 0;
        let enough_nodes = nodes >= FAIL_ON_NODES || nobody_else;
        let enough_tries = failure.blames_job() || history.tries >= NODE_FAULTS;
        (enough_nodes && enough_tries) || history.tries >= MAX_TRIES
    }
}
