//! What nobody's message brings about: a unit grows late, a ballot finds no voter.

use shoal_protocol::{JobId, Micros, Time};

use super::LANES;
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

impl Scheduler {
    pub(crate) fn plan_review(&mut self, now: Time) {
        let idle = self.hungry.iter().any(|hungry| !hungry.is_empty()) && !self.loans.is_empty();
        if self.review.is_none() && (idle || self.ballots > 0) {
            self.review = Some(now + REVIEW);
        }
    }

    pub(crate) fn review_if_due(&mut self, now: Time) {
        if self.review.is_none_or(|due| now < due) {
            return;
        }
        self.review = None;
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
            let jobs: alloc::vec::Vec<_> = self.running.iter().copied().collect();
            for id in jobs {
                self.review_ballots(now, id);
            }
        }
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
        let old: alloc::vec::Vec<_> = old.copied().collect();
        for start in old {
            self.accept(now, id, start);
        }
    }
}
