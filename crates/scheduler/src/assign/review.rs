//! What nobody's message brings about: a unit grows late, a ballot finds no voter, a lost unit nobody to try it.

use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use shoal_protocol::{Attempt, JobId, Micros, Time, ToNode};

use super::LANES;
use super::fit::expected_time;
use crate::Output;
use crate::state::Scheduler;
use crate::unit::Loan;

/// How often to look while anything is open: short beside a unit's quarter second.
const REVIEW: Micros = Micros::from_millis(200);
/// Idle nodes asked in one review; the next one asks others.
const IDLE_ASKED: usize = 64;
/// A ballot waits this long before anybody asks whether there is a voter at all: nodes that were cut off
/// come back in this time.
const PATIENCE: Micros = Micros::from_secs(2);
/// Ballots of one job looked at in one review, drawn by chance.
const BALLOTS_SEEN: usize = 16;
/// Lost units of one job looked at in one review.
const LOST_SEEN: usize = 16;
/// Open loans looked at in one review, the oldest first; the next one goes on from there.
const LOANS_SEEN: usize = 256;
/// Nobody is late before this time, nor before so many times what the node, or the pool on average, should take.
const LATE_AFTER: Micros = Micros::from_secs(5);
const LATE_TIMES: u64 = 4;
/// The same where nobody knows how long a unit takes, for nodes that gave no answer yet.
const LATE_UNKNOWN: Micros = Micros::from_secs(30);
/// Copies of one unit that may be late while another is lent. Long units are no reason to ask everybody; those
/// who never answered anything do not count, because they may never.
const MOST_LATE: usize = 2;

impl Scheduler {
    pub(crate) fn plan_review(&mut self, now: Time) {
        let idle = self.hungry.iter().any(|hungry| !hungry.is_empty()) && !self.loans.is_empty();
        if self.review.is_none() && (idle || self.ballots > 0) {
            self.review = Some(now + REVIEW);
        }
    }

    /// Something is to be looked at again though nobody may say anything until then.
    pub(crate) fn look_soon(&mut self, now: Time) {
        self.review.get_or_insert(now + REVIEW);
    }

    pub(crate) fn review_if_due(&mut self, now: Time) {
        if self.review.is_none_or(|due| now < due) {
            return;
        }
        self.review = None;
        self.look_for_late(now);
        self.review_lost(now);
        for lane in LANES {
            let tail = self.running.iter().filter_map(|id| self.jobs.get(id)).any(|job| {
                job.spec.needs.lane == lane && (job.waiting.is_empty() || !job.votes.is_empty())
            });
            let asked = self.hungry[lane as usize].len().min(IDLE_ASKED);
            for _ in 0..if tail { asked } else { 0 } {
                let Some(node) = self.next_hungry(lane) else { break };
                self.feed(now, node);
            }
        }
        if self.ballots > 0 {
            let jobs: Vec<_> = self.running.iter().copied().collect();
            for id in jobs {
                self.review_ballots(now, id);
            }
        }
    }

    /// Time passes, nodes come and go: a lost unit may be hopeless now.
    fn review_lost(&mut self, now: Time) {
        let jobs = self.running.iter().filter_map(|id| self.jobs.get(id));
        let lost = jobs.filter(|job| !job.aside.is_empty());
        let lost: Vec<_> = lost
            .flat_map(|job| job.aside.iter().take(LOST_SEEN).map(|start| (job.id, *start)))
            .collect();
        if !lost.is_empty() {
            self.look_soon(now);
            self.stirred = true;
        }
        for (id, start) in lost {
            self.end_if_hopeless(now, id, start);
        }
    }

    /// Looks at loans in the order in which they were lent.
    fn look_for_late(&mut self, now: Time) {
        let after = self.looked_at.take().map_or(Unbounded, Excluded);
        let old = self.loans.range((after, Unbounded)).take(LOANS_SEEN);
        let old = old.take_while(|(_, loan)| now > loan.since + LATE_AFTER);
        let seen: Vec<_> =
            old.map(|(attempt, loan)| (*attempt, self.is_overdue(now, loan))).collect();
        if seen.len() == LOANS_SEEN {
            self.looked_at = seen.last().map(|(attempt, _)| *attempt);
        }
        for (attempt, _) in seen.into_iter().filter(|(_, overdue)| *overdue) {
            self.give_up_on(now, attempt);
        }
    }

    /// Whether a loan takes so long that somebody else should have its unit.
    fn is_overdue(&self, now: Time, loan: &Loan) -> bool {
        let Some(job) = self.jobs.get(&loan.job).filter(|_| !loan.late) else { return false };
        let Some(unit) = job.units.get(&loan.unit) else { return false };
        let silent = self.peers.get(&loan.node).is_some_and(|peer| peer.units_done == 0);
        if job.seen_pace.milli_rate == 0 {
            // Nobody knows how long it takes; but somebody who showed nothing yet is not waited for without end.
            return silent && now > loan.since + LATE_UNKNOWN;
        }
        let usual = expected_time(loan.span.len, job.seen_pace);
        let should = usual.max(loan.due - loan.since).0.saturating_mul(LATE_TIMES);
        let proven = |node| !self.peers.get(&node).is_some_and(|peer| self.is_newcomer(peer));
        let late = unit.copies.iter().filter(|copy| copy.late && proven(copy.node)).count();
        now > loan.since + Micros(should).max(LATE_AFTER) && late < MOST_LATE
    }

    /// A loan is late: others get its unit too, and if it only tries what is merged, instead of it.
    fn give_up_on(&mut self, now: Time, attempt: Attempt) {
        let Some(loan) = self.loans.get_mut(&attempt) else { return };
        loan.late = true;
        let (id, start, node) = (loan.job, loan.unit, loan.node);
        if self.peers.get(&node).is_some_and(|peer| peer.late == 0) {
            self.note_no_show(node);
            self.broke(now, node);
        }
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.late += 1;
        let conn = peer.conn;
        let Some(unit) = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start)) else {
            return;
        };
        unit.history.drop_by(node);
        let copy = unit.copies.iter_mut().find(|copy| copy.attempt == attempt);
        if let Some(copy) = copy {
            copy.late = true;
        }
        if unit.is_merged() {
            self.outputs
                .push_back(Output::Send { conn, message: ToNode::Revoke([attempt].into()) });
            self.give_back(now, &[attempt], false);
        } else {
            self.refresh(id, start);
        }
        self.stirred = true;
    }

    fn review_ballots(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.votes.is_empty() {
            return;
        }
        let from = self.chance.below(job.spec.items);
        let drawn = job.votes.range(from..).chain(job.votes.range(..from)).take(BALLOTS_SEEN);
        let old = drawn.filter(|start| {
            let ballot = job.units.get(start).and_then(|unit| unit.ballot.as_ref());
            ballot.is_some_and(|ballot| now - ballot.since > PATIENCE)
        });
        let old: Vec<_> = old.copied().collect();
        for start in old {
            self.accept(now, id, start);
        }
    }
}
