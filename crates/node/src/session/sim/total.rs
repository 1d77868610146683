//! What the members make of all their rows together, at every checkpoint and at the end: rank 0 gathers a few
//! numbers of each row, folds them in the order of the rows, and tells the coordinator. Nobody waits for it but the
//! end: a crew whose last rows are handed in is over, so rank 0 hands in its own after the last total.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::{Reduce, SimWork};
use shoal_protocol::{CrewSay, Failure, Micros, Span, Time};

use super::step::MAX_KEEPING;
use super::{Phase, Place, Sim, SimOutput};
use crate::collective::{Group, GroupInput, GroupOutput, Op, OpId, Rank};
use crate::session::talk::words;

/// Totals under way. Beyond it no further checkpoint begins, so that one slow link slows the crew down and does not
/// fill rank 0's memory.
const MAX_TOTALS: usize = 8;
/// A member that lets a total wait this long is named.
const PATIENCE: Micros = Micros::from_secs(2);
/// And again, so that the coordinator knows that it is still so.
const AGAIN: Micros = Micros::from_secs(1);

pub(super) struct Totals {
    work: SimWork,
    how: Reduce,
    group: Group,
    /// Bytes that each rank gives to one.
    parts: Vec<usize>,
    mine: usize,
    /// Steps of those under way, by number, and how many began.
    steps: BTreeMap<OpId, u64>,
    began: u32,
    /// Who is waited for, and when to say so again.
    late: BTreeSet<Rank>,
    again_at: Time,
}

impl Totals {
    /// None where there is no such rank.
    pub(super) fn new(place: Place, work: &SimWork, how: Reduce, bands: &[Span]) -> Option<Totals> {
        let bytes = |band: &Span| band.len as usize * work.lanes as usize * 8;
        Some(Totals {
            group: Group::new(place.rank, place.ranks, PATIENCE)?,
            how,
            parts: bands.iter().map(bytes).collect(),
            mine: usize::from(place.rank.0),
            steps: BTreeMap::new(),
            began: 0,
            late: BTreeSet::new(),
            again_at: Time(0),
            work: SimWork { source: Default::default(), ..work.clone() },
        })
    }

    pub(super) fn has_room(&self) -> bool {
        self.steps.len() < MAX_TOTALS
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        let again = (!self.late.is_empty()).then_some(self.again_at);
        self.group.next_timeout().into_iter().chain(again).min()
    }

    pub(super) fn check(&self) {
        self.group.check();
        let most = MAX_TOTALS + MAX_KEEPING + 1;
        assert!(self.steps.len() <= most, "more totals at a time than allowed");
        assert!(self.steps.values().is_sorted(), "totals out of order");
    }

    /// From the bytes of all rows, in order.
    fn fold(&self, data: &[u8]) -> Vec<f64> {
        let (rows, _) = data.as_chunks::<8>();
        let rows: Vec<_> = rows.iter().map(|row| f64::from_le_bytes(*row)).collect();
        self.how.total(&self.work, &rows)
    }
}

impl Sim {
    /// The engine read this band's rows.
    pub(super) fn reduced(&mut self, now: Time, step: u64, rows: &[f64]) {
        let Some(totals) = &mut self.totals else { return };
        let data: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        let expected = totals.parts.get(totals.mine).copied().unwrap_or(0);
        let after = totals.steps.values().next_back().is_none_or(|last| *last < step);
        if data.len() != expected || !after {
            let message =
                format!("{} bytes of row totals at step {step}; expected {expected}", data.len());
            return self.fail(Failure::Internal { message });
        }
        totals.steps.insert(OpId(totals.began), step);
        totals.began += 1;
        let op = Op::Gather { root: Rank(0), parts: totals.parts.clone() };
        totals.group.handle(now, GroupInput::Begin { op, data: Arc::new(data) });
    }

    /// A member said something for a total.
    pub(super) fn common(&mut self, now: Time, from: Rank, message: Vec<u8>) {
        match &mut self.totals {
            Some(totals) => totals.group.handle(now, GroupInput::Received { from, message }),
            None => {
                let why = "a part of a common operation, of which there is none here";
                self.accuse(from, String::from(why));
            }
        }
    }

    /// What came of it, and then the end.
    pub(super) fn bring_together(&mut self, now: Time) {
        if let Some(totals) = &mut self.totals {
            totals.group.handle(now, GroupInput::Tick);
        }
        while let Some(output) = self.totals.as_mut().and_then(|totals| totals.group.poll_output())
        {
            self.totals_have(now, output);
        }
        self.name_late(now);
        let open = self.totals.as_ref().is_some_and(|totals| !totals.steps.is_empty());
        if !open
            && matches!(self.phase, Phase::Done)
            && let Some(output) = self.last.take()
        {
            let attempt = self.task.attempt;
            self.outputs.push_back(SimOutput::Deliver { attempt, output });
        }
    }

    fn totals_have(&mut self, now: Time, output: GroupOutput) {
        let Some(totals) = &mut self.totals else { return };
        match output {
            GroupOutput::Send { to, message } => {
                self.outputs.push_back(SimOutput::Common { to, message });
            }
            GroupOutput::Done { op, data } => {
                totals.late.clear();
                let step = totals.steps.remove(&op);
                if let Some(step) = step.filter(|_| totals.mine == 0) {
                    let numbers = totals.fold(&data);
                    self.outputs.push_back(SimOutput::Says(CrewSay::Total { step, numbers }));
                }
            }
            GroupOutput::Refused(error) => {
                let message = format!("the totals of all rows cannot be gathered: {error:?}");
                self.fail(Failure::Internal { message });
            }
            GroupOutput::Slow { rank, .. } => {
                totals.late.insert(rank);
                totals.again_at = now;
            }
            GroupOutput::Hold { rank, hold } => {
                self.outputs.push_back(SimOutput::Hold { rank, hold });
            }
            GroupOutput::Bad { rank, fault } => self.accuse(rank, words(fault)),
            // Nobody here asks for words from rank to rank.
            GroupOutput::Got { .. } => {}
        }
    }

    fn name_late(&mut self, now: Time) {
        let Some(totals) = &mut self.totals else { return };
        if totals.late.is_empty() || totals.again_at > now {
            return;
        }
        totals.again_at = now + AGAIN;
        self.outputs.extend(totals.late.iter().copied().map(SimOutput::Slow));
    }
}
