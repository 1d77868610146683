//! A job and what became of its items.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use serde::{Deserialize, Serialize};
use shoal_kinds::JobSpec;
use shoal_protocol::{Attempt, CrewId, Failure, JobId, Micros, NodeId, Priority, Span, Time};

use crate::assign::crew::{Checkpoint, CrewChange, Total};
use crate::assign::roll::Roll;
use crate::fact::{Failed, Place};
use crate::meter::{Meter, Pace};
use crate::split::SpanSet;
use crate::unit::Unit;
use crate::verify::{Proofs, Rules};

/// So many answers that differ from those of other classes show that the job cannot be computed together.
pub(crate) const ODD: u32 = 3;
/// The weight a job has if nobody says otherwise.
const USUAL_WEIGHT: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    Running,
    Done,
    Failed,
    Cancelled,
}

/// Why a job failed: the last node's own words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFailure {
    pub span: Span,
    pub nodes: Vec<NodeId>,
    pub failure: Failure,
}

/// Each item of a running job is in exactly one place: waiting, in a unit in flight, or merged.
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) spec: JobSpec,
    /// Its items are lent one by one, not to a crew: known for good, and asked for every unit.
    pub(crate) farmed: bool,
    pub(crate) state: JobState,
    pub(crate) submitted: Time,
    pub(crate) first_lent: Option<Time>,
    pub(crate) ended: Option<Time>,
    /// Items never lent, or handed back whole.
    pub(crate) waiting: SpanSet,
    /// Units in flight, by their first item.
    pub(crate) units: BTreeMap<u64, Unit>,
    /// Units in flight that nobody answered and that want a copy lent.
    pub(crate) wanting: BTreeSet<u64>,
    /// The same for those that somebody lost: perhaps only some may try them now.
    pub(crate) aside: BTreeSet<u64>,
    /// Units in flight that want somebody to confirm or refute an answer.
    pub(crate) votes: BTreeSet<u64>,
    /// Items of units in flight that nobody has and nobody answered.
    pub(crate) items_idle: u64,
    pub(crate) merged: BTreeMap<u64, Merged>,
    /// Who checked merged units.
    pub(crate) proofs: Proofs,
    /// Who computed or checked which units, and some that were taken back; kept from the first lie on.
    pub(crate) stood: Option<BTreeSet<(NodeId, u64)>>,
    /// How many of each node's units were merged unconfirmed and not tried by an audit.
    pub(crate) unaudited: BTreeMap<NodeId, u64>,
    /// Nodes whose answers others of other numeric classes contradicted, and how often.
    pub(crate) odd: BTreeMap<NodeId, u32>,
    /// How often its end was put off to try what is merged.
    pub(crate) audits: u32,
    pub(crate) items_done: u64,
    /// Of those done: failed by themselves.
    pub(crate) items_failed: u64,
    pub(crate) units_leased: u64,
    /// Copies among those that were lent beyond what their units ask for.
    pub(crate) extras: u64,
    /// Copies lent because others were late, ever.
    pub(crate) speculated: u64,
    /// Copies by when they should be done; kept only at the end of a job, when late ones are looked for.
    pub(crate) late: Option<BTreeSet<(Time, Attempt)>>,
    pub(crate) retries: u64,
    /// Largest unit still tried: lowered when a unit runs out of time.
    pub(crate) size_cap: u64,
    /// Expected microseconds lent so far, by weight: the measure of fairness between jobs.
    pub(crate) served: u64,
    pub(crate) shares: BTreeMap<NodeId, Tally>,
    /// Who could compute it, if that must be known to deal it evenly.
    pub(crate) roll: Option<Box<Roll>>,
    /// Connected peers that were told what the job is.
    pub(crate) told: BTreeSet<NodeId>,
    /// Rate of all peers that have one on this job, in thousandths of items per second.
    pub(crate) total_milli_rate: u64,
    /// What one slot did in the answers so far, the last ones counting most; kept when nodes leave.
    pub(crate) seen_pace: Pace,
    pub(crate) meter: Meter,
    pub(crate) failure: Option<JobFailure>,
    /// Steps of its crew that are believed, and how many of strangers among them nobody could compute again.
    pub(crate) proven: u64,
    pub(crate) unchecked: u64,
    /// What its crew last made of all rows.
    pub(crate) total: Option<Total>,
    /// Those at work on it; the first computes its result.
    pub(crate) crews: Vec<CrewId>,
    /// Of a crew: its epoch and checkpoint, and when it is over, what happened to it.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) past: Vec<CrewChange>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    pub(crate) len: u64,
    pub(crate) node: NodeId,
    pub(crate) place: Option<Place>,
    /// When, as the last [`crate::Fact::Passed`] says.
    pub(crate) at: Time,
}

/// Why a merged unit is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Who gave the same answer, beside the one whose answer is merged.
    pub by: Vec<NodeId>,
    /// All that the policy asks. Without it nobody else was there to ask.
    pub sure: bool,
    /// One of the operator's own nodes gave this answer.
    pub vouched: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) items: u64,
    pub(crate) units: u64,
}

/// A job's place among those with something to lend: the more urgent first, then whoever got less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    priority: Reverse<Priority>,
    served: u64,
    pub(crate) job: JobId,
}

impl Job {
    pub(crate) fn turn(&self, job: JobId) -> Turn {
        let priority = Reverse(self.spec.policy.priority);
        Turn { priority, served: self.served, job }
    }

    /// Books time lent: what counts twice as much for one job is half as much for a weight twice as high.
    pub(crate) fn serve(&mut self, expected: Micros) {
        let weight = u64::from(self.spec.policy.weight.max(1));
        let share = expected.0.saturating_mul(USUAL_WEIGHT) / weight;
        self.served = self.served.saturating_add(share.max(1));
    }

    pub(crate) fn new(id: JobId, spec: JobSpec, submitted: Time) -> Job {
        Job {
            id,
            waiting: SpanSet::of(Span::new(0, spec.items)),
            roll: Roll::for_job(&spec),
            farmed: !spec.work.takes_crew(),
            spec,
            state: JobState::Running,
            submitted,
            first_lent: None,
            ended: None,
            units: BTreeMap::new(),
            wanting: BTreeSet::new(),
            aside: BTreeSet::new(),
            items_idle: 0,
            votes: BTreeSet::new(),
            merged: BTreeMap::new(),
            stood: None,
            proofs: Proofs::default(),
            unaudited: BTreeMap::new(),
            odd: BTreeMap::new(),
            audits: 0,
            items_done: 0,
            items_failed: 0,
            units_leased: 0,
            extras: 0,
            speculated: 0,
            late: None,
            retries: 0,
            size_cap: u64::MAX,
            served: 0,
            shares: BTreeMap::new(),
            told: BTreeSet::new(),
            total_milli_rate: 0,
            seen_pace: Pace::default(),
            meter: Meter::default(),
            failure: None,
            proven: 0,
            unchecked: 0,
            total: None,
            crews: Vec::new(),
            checkpoint: Checkpoint::default(),
            past: Vec::new(),
        }
    }

    /// Items nobody works on and nobody has done.
    pub(crate) fn left(&self) -> u64 {
        self.waiting.len() + self.items_idle
    }

    /// Items in flight that somebody works on or has answered.
    pub(crate) fn items_leased(&self) -> u64 {
        self.spec.items - self.items_done - self.left()
    }

    /// Whether there is anything to lend.
    pub(crate) fn has_work(&self) -> bool {
        let wishes = [&self.wanting, &self.aside, &self.votes];
        self.farmed && !self.waiting.is_empty() || wishes.iter().any(|starts| !starts.is_empty())
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules::of(self.spec.policy.verify)
    }

    /// Whether a node's numbers differ too much from others'.
    pub(crate) fn is_odd(&self, node: NodeId) -> bool {
        self.odd.get(&node).is_some_and(|times| *times >= ODD)
    }

    /// Notes who checked a unit; gives those whose answer was not known to be right before.
    pub(crate) fn prove(&mut self, span: Span, node: NodeId, proof: &Proof) -> Vec<NodeId> {
        if let Some(stood) = &mut self.stood {
            stood.extend(proof.by.iter().map(|by| (*by, span.start)));
        }
        let merged = self.merged.get(&span.start).is_some_and(|merged| merged.len == span.len);
        if merged && let Some(mut old) = self.proofs.get(&span.start).cloned() {
            let new = proof.by.iter().filter(|by| **by != node && !old.by.contains(by));
            let new: Vec<_> = new.copied().collect();
            old.by.extend(&new);
            old.sure |= proof.sure;
            old.vouched |= proof.vouched;
            self.proofs.insert(span.start, old);
            return new;
        }
        self.proofs.insert(span.start, proof.clone());
        core::iter::once(node).chain(proof.by.iter().copied()).collect()
    }

    /// A node's pace changed: keeps the total in step.
    pub(crate) fn repace(&mut self, old: Pace, new: Pace) {
        let others = self.total_milli_rate.saturating_sub(old.all_slots());
        self.total_milli_rate = others.saturating_add(new.all_slots());
    }

    pub(crate) fn saw(&mut self, milli_rate: u64) {
        let before = self.seen_pace.milli_rate;
        let rate = if before == 0 { milli_rate } else { before / 8 * 7 + milli_rate / 8 };
        self.seen_pace.milli_rate = rate.max(1);
    }

    pub(crate) fn merge(&mut self, at: Time, span: Span, node: NodeId, place: Option<Place>) {
        self.merged.insert(span.start, Merged { len: span.len, node, place, at });
        self.items_done += span.len;
        self.items_failed += place.map_or(0, |place| u64::from(place.failed.items));
        if let Some(stood) = &mut self.stood {
            stood.insert((node, span.start));
        }
        let share = self.shares.entry(node).or_default();
        share.items += span.len;
        share.units += 1;
        self.note_taken(node);
    }

    /// A log says how many items of a merged unit failed.
    pub(crate) fn recall_failed(&mut self, span: Span, failed: Failed) {
        let merged = self.merged.get_mut(&span.start).filter(|merged| merged.len == span.len);
        if let Some(place) = merged.and_then(|merged| merged.place.as_mut()) {
            self.items_failed -= u64::from(place.failed.items);
            self.items_failed += u64::from(failed.items);
            place.failed = failed;
        }
    }

    /// Takes a merged unit back; an ended job runs again.
    pub(crate) fn unmerge(&mut self, span: Span) {
        let same = self.merged.get(&span.start).is_some_and(|merged| merged.len == span.len);
        if !same {
            return;
        }
        self.proofs.remove(span.start);
        if let Some(merged) = self.merged.remove(&span.start) {
            self.items_done -= span.len;
            self.items_failed -= merged.place.map_or(0, |place| u64::from(place.failed.items));
            self.waiting.insert(span);
            if let Some(share) = self.shares.get_mut(&merged.node) {
                share.items -= span.len;
                share.units -= 1;
            }
            self.note_taken(merged.node);
            self.state = JobState::Running;
            self.ended = None;
        }
    }

    /// Part of [`crate::Scheduler::check`], while it runs: each item is in one place, and every count is what the items
    /// make it.
    pub(crate) fn check(&self) {
        let id = self.id;
        let mut parts: Vec<Span> = self.waiting.spans().collect();
        let open = self.units.values().filter(|unit| !unit.is_merged());
        parts.extend(open.map(|unit| unit.span));
        parts.extend(self.merged.iter().map(|(start, merged)| Span::new(*start, merged.len)));
        parts.sort();
        let end = parts.iter().fold(0, |at, part| {
            assert_eq!(part.start, at, "job {id}: items lost or held twice at {at}");
            part.end()
        });
        assert_eq!(end, self.spec.items, "job {id}: items lost at the end");
        self.check_units();
        self.check_stood();
        let done: u64 = self.merged.values().map(|merged| merged.len).sum();
        assert_eq!(done, self.items_done, "job {id}: items done");
        let places = self.merged.values().filter_map(|merged| merged.place);
        let failed: u64 = places.map(|place| u64::from(place.failed.items)).sum();
        assert_eq!(failed, self.items_failed, "job {id}: items that failed");
        let first = self.checkpoint.pokes.first_key_value().map(|(step, _)| *step);
        let early = first.is_some_and(|step| step < self.checkpoint.step);
        assert!(!early, "job {id}: a poke of before the checkpoint");
    }
}
