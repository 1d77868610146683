//! What nobody's message brings about: a unit grows late, a ballot finds no voter, a lost unit nobody to try it.

use alloc::vec::Vec;
use shoal_protocol::{Attempt, JobId, Lane, Micros, Time, ToNode};

use super::fit::expected_time;
use crate::Output;
use crate::loans::Loan;
use crate::state::Scheduler;

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

/// When to look again, and whether somebody idle is to be asked at once.
#[derive(Default)]
pub(crate) struct Review {
    due: Option<Time>,
    /// A unit began to want somebody while nobody was asked.
    woken: bool,
}

impl Review {
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Something is to be looked at again though nobody may say anything until then.
    pub(crate) fn look_soon(&mut self, now: Time) {
        self.due.get_or_insert(now + REVIEW);
    }

    /// Whether it is time to look: then that is done now.
    fn begin(&mut self, now: Time) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    pub(crate) fn wake(&mut self) {
        self.woken = true;
    }

    /// Whether anything woke it since this was last asked.
    pub(crate) fn take_woken(&mut self) -> bool {
        core::mem::take(&mut self.woken)
    }
}

impl Scheduler {
    pub(crate) fn plan_review(&mut self, now: Time) {
        let idle = self.peers.is_any_hungry() && !self.loans.is_empty();
        if idle || self.jobs.has_ballots() {
            self.review.look_soon(now);
        }
    }

    pub(crate) fn review_if_due(&mut self, now: Time) {
        if !self.review.begin(now) {
            return;
        }
        self.look_for_late(now);
        self.review_lost(now);
        for lane in Lane::ALL {
            let tail = self.jobs.running_jobs().any(|job| {
                job.spec.needs.lane == lane && (job.waiting.is_empty() || !job.votes.is_empty())
            });
            let asked = self.peers.hungry(lane).len().min(IDLE_ASKED);
            for _ in 0..if tail { asked } else { 0 } {
                let Some(node) = self.peers.next_hungry(lane) else { break };
                self.feed(now, node);
            }
        }
        if self.jobs.has_ballots() {
            let jobs: Vec<_> = self.jobs.running().iter().copied().collect();
            for id in jobs {
                self.review_ballots(now, id);
            }
        }
    }

    /// Time passes, nodes come and go: a lost unit may be hopeless now.
    fn review_lost(&mut self, now: Time) {
        let jobs = self.jobs.running_jobs();
        let lost = jobs.filter(|job| !job.aside.is_empty());
        let lost: Vec<_> = lost
            .flat_map(|job| job.aside.iter().take(LOST_SEEN).map(|start| (job.id, *start)))
            .collect();
        if !lost.is_empty() {
            self.review.look_soon(now);
            self.review.wake();
        }
        for (id, start) in lost {
            self.end_if_hopeless(now, id, start);
        }
    }

    /// Looks at loans in the order in which they were lent.
    fn look_for_late(&mut self, now: Time) {
        let seen = self.loans.next_old(LOANS_SEEN, |loan| now > loan.since + LATE_AFTER);
        let overdue = seen.into_iter().filter(|attempt| {
            self.loans.get(attempt).is_some_and(|loan| self.is_overdue(now, loan))
        });
        let overdue: Vec<_> = overdue.collect();
        for attempt in overdue {
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
        let Some(loan) = self.loans.get(&attempt) else { return };
        let (id, start, node) = (loan.job, loan.unit, loan.node);
        if self.peers.get(&node).is_some_and(|peer| peer.late() == 0) {
            self.note_no_show(node);
            self.broke(now, node);
        }
        self.mark_late(attempt);
        let Some(conn) = self.conn_of(node) else { return };
        let Some(unit) = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start)) else {
            return;
        };
        unit.history.drop_by(node);
        // The operator's own node goes on: it may have to decide, and lent the unit again it would be late again.
        if unit.is_merged() && !self.peers.own().contains(&node) {
            self.outputs
                .push_back(Output::Send { conn, message: ToNode::Revoke([attempt].into()) });
            self.give_back(now, &[attempt], false);
        } else {
            self.refresh(id, start);
        }
        self.review.wake();
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
