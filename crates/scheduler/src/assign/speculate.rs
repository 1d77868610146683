//! A second copy where the first is late. When a job has nothing else to lend, an idle node gets a copy of the
//! unit that would hold the job up longest, if it should be done clearly sooner; the first answer wins.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{Attempt, JobId, Lane, Micros, NodeId, Strategy, Time};

use super::fit::{Cut, expected_time};
use crate::job::Job;
use crate::loans::Loan;
use crate::meter::Pace;
use crate::state::Scheduler;

/// Copies of one unit beyond what it asks for: a second chance, and one if that goes wrong too.
const MAX_EXTRA: usize = 2;
/// A copy is worth it if it should take less than this part of what the late one still takes.
const CLEARLY_SOONER: (u64, u64) = (7, 10);
/// Gaining less than this is not worth the messages.
const LEAST_GAIN: Micros = Micros::from_millis(10);
/// Jobs at their end that are looked at for one node.
const JOBS_SEEN: usize = 8;
/// How many of the most overdue and of the last due copies are looked at.
const LOOKED_AT: usize = 4;

impl Scheduler {
    pub(crate) fn speculate(&mut self, now: Time, node: NodeId) -> Option<Cut> {
        let peer = self.peers.get(&node)?;
        if !peer.may_work() || peer.loans().len() >= MAX_LEASES_PER_NODE {
            return None;
        }
        let width = self.width(peer);
        let idle = |lane| peer.load(lane).units < width.slots(peer, lane);
        if !Lane::ALL.into_iter().any(idle) {
            return None;
        }
        let jobs = self.jobs.running().iter().copied().filter(|id| {
            self.jobs.get(id).is_some_and(|job| {
                job.spec.strategy == Strategy::Adaptive
                    && job.waiting.is_empty()
                    && job.units_leased > 0
                    && job.extras < 2 + job.units_leased / 4
                    && idle(job.spec.needs.lane)
                    && peer.suits(job)
                    && self.has_means(peer, job)
            })
        });
        let jobs: Vec<_> = jobs.take(JOBS_SEEN).collect();
        jobs.into_iter().find_map(|id| self.overtake(now, node, id))
    }

    fn overtake(&mut self, now: Time, node: NodeId, id: JobId) -> Option<Cut> {
        self.gather_late(id);
        let (peer, job) = (self.peers.get(&node)?, self.jobs.get(&id)?);
        let pace = peer.paces.get(&id).copied().unwrap_or_default();
        let (attempt, expected) = self.latest(now, node, job, pace)?;
        let loan = self.loans.get(&attempt)?;
        let (unit, span, lane) = (loan.unit, loan.span, loan.lane);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.speculated += 1;
        }
        Some(Cut { job: id, unit, span, lane, expected, extra: true })
    }

    /// The copy that would hold the job up longest, of those this node could overtake.
    fn latest(&self, now: Time, node: NodeId, job: &Job, pace: Pace) -> Option<(Attempt, Micros)> {
        let late = job.late.as_ref()?;
        let ends = late.iter().take(LOOKED_AT).chain(late.iter().rev().take(LOOKED_AT));
        let pace = if pace.milli_rate > 0 { pace } else { job.usual_pace()? };
        let worth = ends.filter_map(|(_, attempt)| {
            let loan = self.loans.get(attempt)?;
            let unit = job.units.get(&loan.unit)?;
            let extra = unit.copies.iter().filter(|copy| copy.extra).count();
            let mine = expected_time(loan.span.len, pace);
            let rest = remaining(now, loan);
            let gain = mine.0.saturating_mul(CLEARLY_SOONER.1)
                < rest.0.saturating_mul(CLEARLY_SOONER.0)
                && rest.0 - mine.0 > LEAST_GAIN.0;
            let takes = extra < MAX_EXTRA && gain && self.may_take(node, job, unit);
            takes.then_some((rest, *attempt, mine))
        });
        worth.max().map(|(_, attempt, mine)| (attempt, mine))
    }

    /// Copies by due time, made when first needed: most jobs are over before.
    fn gather_late(&mut self, id: shoal_protocol::JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.late.is_some() {
            return;
        }
        let copies = job.units.values().flat_map(|unit| &unit.copies);
        let late = copies.filter_map(|c| Some((self.loans.get(&c.attempt)?.due, c.attempt)));
        let late = late.collect();
        if let Some(job) = self.jobs.get_mut(&id) {
            job.late = Some(late);
        }
    }
}

/// What is late already is thought to take as long again.
fn remaining(now: Time, loan: &Loan) -> Micros {
    if now < loan.due { loan.due - now } else { now - loan.since }
}

impl Job {
    /// How fast a node does this job on average, if anybody knows.
    fn usual_pace(&self) -> Option<Pace> {
        let milli_rate = self.total_milli_rate / (self.told.len() as u64).max(1);
        (milli_rate > 0).then_some(Pace { milli_rate, ..Pace::default() })
    }
}
