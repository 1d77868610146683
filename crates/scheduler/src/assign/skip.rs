//! Items that fail on whoever computes them, in jobs whose other items go on: such an item is tried alone, and when
//! enough of those say so whose word is worth most, what its kind has for that stands in its place.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_protocol::{Failure, JobId, Span, Time};

use super::quarantine::{Loss, Rank};
use crate::Output;
use crate::fact::Place;
use crate::job::Proof;
use crate::loans::Loan;
use crate::state::Scheduler;

impl Scheduler {
    /// Puts the item that a unit failed on into a unit of its own, so that others try it alone; what is around it is
    /// lent anew. The loan as it would have been of that unit.
    pub(super) fn singled_out(&mut self, loan: Loan, failure: &Failure) -> Loan {
        let Some(item) = self.item_to_skip(loan.job, failure) else { return loan };
        if !self.jobs.single_out(loan.job, loan.unit, item) {
            return loan;
        }
        self.review.wake();
        Loan { unit: item, span: Span::new(item, 1), ..loan }
    }

    /// A unit is believed to fail: whether its job goes on without the item at fault.
    pub(super) fn skip(&mut self, id: JobId, start: u64, failure: &Failure) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(bytes) = job.spec.work.failed(failure) else { return false };
        let Some(unit) = job.units.get(&start) else { return false };
        let (span, late) = (unit.span, unit.copies.iter().map(|copy| copy.attempt));
        let late: Vec<_> = late.collect();
        // Nobody waits for those any more.
        self.revoke(&late);
        if span.len > 1 {
            // Where nobody says which item it was, halves of the unit are tried.
            let named = failure.item().filter(|item| (start..span.end()).contains(item));
            let item = named.unwrap_or(start + span.len / 2);
            let alone = self.jobs.single_out(id, start, item);
            self.review.wake();
            return alone;
        }
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        if let Some(unit) = unit {
            unit.history.skipped = true;
            self.outputs.push_back(Output::Write { job: id, span, bytes });
        }
        self.refresh(id, start);
        true
    }

    /// What stands in the place of an item is written, or could not be.
    pub(crate) fn written(&mut self, now: Time, id: JobId, span: Span, place: Option<Place>) {
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&span.start));
        let Some(unit) = unit.filter(|unit| unit.span == span && unit.history.skipped) else {
            return;
        };
        let Some(place) = place else {
            unit.history.skipped = false;
            self.refresh(id, span.start);
            self.review.look_soon(now);
            return;
        };
        let failed = unit.history.losses.iter().filter(|loss| loss.failed());
        let mut said: Vec<Loss> = failed.cloned().collect();
        said.sort_by_key(|loss| Reverse(loss.rank));
        let Some((first, others)) = said.split_first() else { return };
        // Where only strangers say so, they have the last word and earn nothing by it.
        let own = first.rank == Rank::Own;
        let by = others.iter().map(|loss| loss.node).collect();
        let proof = Proof { by, sure: own, vouched: own };
        let all: BTreeSet<_> = said.iter().map(|loss| loss.node).collect();
        self.conducts.forget(&all);
        self.merge_unit(now, id, span, first.node, Some(place), Some(&proof));
        self.finish_if_whole(now, id);
        self.feed_hungry(now);
    }

    /// The item that a failure names, if its job may go on without it.
    fn item_to_skip(&self, id: JobId, failure: &Failure) -> Option<u64> {
        let item = failure.item()?;
        self.jobs.get(&id)?.spec.work.failed(failure).map(|_| item)
    }
}
