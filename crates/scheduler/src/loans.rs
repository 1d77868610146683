//! Units lent to nodes. A loan is in three places: here, with its holder and as a copy in its unit. They change
//! together, in this file and nowhere else.

use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use shoal_protocol::{Attempt, Footprint, JobId, Lane, Micros, NodeId, Span, Time};

use crate::assign::Cut;
use crate::state::Scheduler;
use crate::unit::Copy;
use crate::verify::Standing;

/// Lendings remembered after their node left: those of a few thousand nodes that come back within seconds.
const REMEMBERED: usize = 1 << 14;

/// A unit lent to a node.
#[derive(Clone, Debug)]
pub(crate) struct Loan {
    pub(crate) job: JobId,
    /// First item of the unit it is a copy of.
    pub(crate) unit: u64,
    /// The items lent: a part of the unit if only that is checked.
    pub(crate) span: Span,
    pub(crate) node: NodeId,
    pub(crate) lane: Lane,
    pub(crate) takes: Footprint,
    pub(crate) since: Time,
    /// When the node first said that it computes it.
    pub(crate) running: Option<Time>,
    /// How long it should take, and when it should be done with all that was lent before it.
    pub(crate) expected: Micros,
    pub(crate) due: Time,
    /// Its copy is [`Copy::late`].
    pub(crate) late: bool,
}

#[derive(Default)]
pub(crate) struct Loans {
    loans: BTreeMap<Attempt, Loan>,
    /// Lendings whose node left with them, oldest first.
    before: BTreeMap<(Attempt, NodeId), (JobId, Span)>,
    /// The last loan that was looked at for being late.
    looked_at: Option<Attempt>,
}

impl Loans {
    pub(crate) fn get(&self, attempt: &Attempt) -> Option<&Loan> {
        self.loans.get(attempt)
    }

    pub(crate) fn contains_key(&self, attempt: &Attempt) -> bool {
        self.loans.contains_key(attempt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loans.is_empty()
    }

    /// Whether this node has it.
    pub(crate) fn is_held(&self, node: NodeId, attempt: Attempt) -> bool {
        self.loans.get(&attempt).is_some_and(|loan| loan.node == node)
    }

    /// What a node had when it left or fell silent.
    pub(crate) fn remember(&mut self, node: NodeId, attempts: &[Attempt]) {
        for attempt in attempts {
            let Some(loan) = self.loans.get(attempt) else { continue };
            self.before.insert((*attempt, node), (loan.job, loan.span));
        }
        while self.before.len() > REMEMBERED {
            self.before.pop_first();
        }
    }

    /// What was lent to this very node before it left; told once.
    pub(crate) fn recall(&mut self, node: NodeId, attempt: Attempt) -> Option<(JobId, Span)> {
        self.before.remove(&(attempt, node))
    }

    /// The oldest loans of those that were not looked at last time, as long as they are `old`.
    pub(crate) fn next_old(&mut self, most: usize, old: impl Fn(&Loan) -> bool) -> Vec<Attempt> {
        let after = self.looked_at.take().map_or(Unbounded, Excluded);
        let loans = self.loans.range((after, Unbounded)).take(most);
        let seen = loans.take_while(|(_, loan)| old(loan)).map(|(attempt, _)| *attempt);
        let seen: Vec<_> = seen.collect();
        if seen.len() == most {
            self.looked_at = seen.last().copied();
        }
        seen
    }
}

impl Scheduler {
    /// Books a copy of a unit in flight.
    pub(crate) fn start_loan(&mut self, now: Time, node: NodeId, attempt: Attempt, cut: Cut) {
        let Cut { job: id, unit: start, span, lane, expected, extra } = cut;
        let (mut due, mut standing) = (now, Standing::Newcomer);
        let needs = self.jobs.get(&id).map(|job| &job.spec.needs);
        let takes = needs.map_or(Footprint::NOTHING, |needs| needs.takes);
        if let Some(peer) = self.peers.lend(now, node, attempt, (lane, takes, expected)) {
            standing = peer.standing(lane);
            let slots = needs.map_or(1, |needs| u64::from(peer.caps.slots_for(needs)).max(1));
            due = now + Micros((peer.load(lane).expected.0 / slots).max(expected.0));
        }
        if let Some(job) = self.jobs.serve(id, expected) {
            job.first_lent.get_or_insert(now);
            job.units_leased += 1;
            job.extras += u64::from(extra);
            let weight = job.rules().weight(standing);
            if let Some(unit) = job.units.get_mut(&start) {
                unit.copies.push(Copy { attempt, node, weight, extra, late: false });
                job.part_begins(node);
            }
            if let Some(late) = &mut job.late {
                late.insert((due, attempt));
            }
        }
        self.refresh(id, start);
        let (job, unit, since, running, late) = (id, start, now, None, false);
        let loan = Loan { job, unit, span, node, lane, takes, since, running, expected, due, late };
        self.loans.loans.insert(attempt, loan);
    }

    /// Ends the booking of a loan, whatever its outcome.
    pub(crate) fn end_loan(&mut self, attempt: Attempt) -> Option<Loan> {
        let loan = self.loans.loans.remove(&attempt)?;
        self.unbook(attempt, &loan);
        Some(loan)
    }

    /// The same, if this node has it.
    pub(crate) fn end_loan_of(&mut self, node: NodeId, attempt: Attempt) -> Option<Loan> {
        let Entry::Occupied(held) = self.loans.loans.entry(attempt) else { return None };
        let loan = (held.get().node == node).then(|| held.remove())?;
        self.unbook(attempt, &loan);
        Some(loan)
    }

    fn unbook(&mut self, attempt: Attempt, loan: &Loan) {
        if let Some(peer) = self.peers.get_mut(&loan.node) {
            peer.let_go(attempt, loan);
        }
        if let Some(job) = self.jobs.get_mut(&loan.job) {
            job.units_leased -= 1;
            if let Some(late) = &mut job.late {
                late.remove(&(loan.due, attempt));
            }
            if let Some(unit) = job.units.get_mut(&loan.unit) {
                let ended = unit.copies.extract_if(.., |copy| copy.attempt == attempt).next();
                job.extras -= u64::from(ended.is_some_and(|copy| copy.extra));
                if ended.is_some() {
                    job.part_ends(loan.node);
                }
            }
        }
    }

    /// The node says that it computes these.
    pub(crate) fn begin_loans(&mut self, now: Time, node: NodeId, running: &[Attempt]) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        for attempt in running {
            let Some(loan) = self.loans.loans.get_mut(attempt) else { continue };
            if loan.node == node && loan.running.is_none() && peer.begins(loan.lane) {
                loan.running = Some(now);
            }
        }
    }

    /// What a node has in hand takes longer, or less long, than thought.
    pub(crate) fn put_off_loans(&mut self, now: Time, node: NodeId, (of, total): (u64, u64)) {
        let Some(peer) = self.peers.get(&node) else { return };
        for attempt in peer.loans() {
            let Some(loan) = self.loans.loans.get_mut(attempt) else { continue };
            let rest = ((loan.due - now).0 / total).saturating_mul(of);
            let due = now + Micros(rest);
            if let Some(late) = self.jobs.get_mut(&loan.job).and_then(|job| job.late.as_mut())
                && late.remove(&(loan.due, *attempt))
            {
                late.insert((due, *attempt));
            }
            loan.due = due;
        }
    }

    /// Nobody waits for this loan any more.
    pub(crate) fn mark_late(&mut self, attempt: Attempt) {
        let Some(loan) = self.loans.loans.get_mut(&attempt).filter(|loan| !loan.late) else {
            return;
        };
        loan.late = true;
        if let Some(peer) = self.peers.get_mut(&loan.node) {
            peer.falls_behind();
        }
        let job = self.jobs.get_mut(&loan.job);
        let copies = job.and_then(|job| job.units.get_mut(&loan.unit)).map(|unit| &mut unit.copies);
        let copy = copies.into_iter().flatten().find(|copy| copy.attempt == attempt);
        if let Some(copy) = copy {
            copy.late = true;
        }
    }

    /// Part of [`Scheduler::check`]. Each copy names a loan of its own, which names it: as there are as many of both,
    /// each loan has its copy.
    pub(crate) fn check_loans(&self) {
        let loans = &self.loans.loans;
        for (attempt, loan) in loans {
            let peer = self.peers.get(&loan.node);
            assert!(
                peer.is_some_and(|peer| peer.loans().contains(attempt)),
                "{attempt}: no holder"
            );
        }
        let held: usize = self.peers.values().map(|peer| peer.loans().len()).sum();
        assert_eq!(held, loans.len(), "loans held");
        let late: usize = self.peers.values().map(|peer| peer.late()).sum();
        assert_eq!(late, loans.values().filter(|loan| loan.late).count(), "late loans");
        let units = self.jobs.iter().flat_map(|(id, job)| job.units.values().map(|u| (*id, u)));
        let mut count = 0;
        for (id, unit) in units {
            for copy in &unit.copies {
                let named = loans.get(&copy.attempt).is_some_and(|loan| {
                    (loan.job, loan.unit, loan.node, loan.late)
                        == (id, unit.span.start, copy.node, copy.late)
                });
                assert!(named, "job {id}, unit {}: a copy that is not lent", unit.span.start);
            }
            count += unit.copies.len();
        }
        assert_eq!(count, loans.len(), "loans without a unit");
    }
}
