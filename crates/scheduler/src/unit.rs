//! A unit in flight: cut from its job and not yet merged, or merged and looked at again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use shoal_protocol::{Attempt, Failure, JobId, NodeId, Span, Time};

use crate::assign::{How, Loss};
use crate::job::Job;
use crate::verify::{Ballot, Rules};

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) span: Span,
    pub(crate) history: History,
    /// Who has it now: never one node twice.
    pub(crate) copies: Vec<Copy>,
    /// Answers to be compared; most units need none.
    pub(crate) ballot: Option<Box<Ballot>>,
    /// Its items are in [`crate::job::Job::items_idle`].
    pub(crate) counted: bool,
}

/// One lending that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) attempt: Attempt,
    pub(crate) node: NodeId,
    /// What its answer would weigh.
    pub(crate) weight: u32,
    /// Lent because another copy is late.
    pub(crate) extra: bool,
    /// So far over its time that nobody waits for it any more.
    pub(crate) late: bool,
}

/// What happened to a unit so far. Most units have none, and there are many units.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Option<Box<Past>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Who reported a failure or vanished soon after it began: each node once.
    pub(crate) losses: Vec<Loss>,
    /// When the first of those did.
    pub(crate) since: Time,
    /// Since when nobody else is here who could try it.
    pub(crate) alone_since: Option<Time>,
    /// What the last of them said.
    pub(crate) words: Option<Failure>,
    /// Who took it and came to nothing, through no fault of the unit's: left, fell silent, gave it back, held it too long.
    pub(crate) dropped: Vec<NodeId>,
    /// Lendings that ended in failure or in the node's vanishing while it computed, and rounds without agreement.
    pub(crate) tries: u32,
    /// It is believed to fail everywhere, and the others go on without it: what stands in its place is being written.
    pub(crate) skipped: bool,
}

/// Who took a unit and came to nothing is remembered for so many; the oldest may try again.
const DROPPED_KEPT: usize = 32;
/// So many who lost a unit are remembered: verdicts need far fewer.
const LOSSES_KEPT: usize = 64;

static NOTHING: Past = Past {
    losses: Vec::new(),
    since: Time(0),
    alone_since: None,
    words: None,
    dropped: Vec::new(),
    tries: 0,
    skipped: false,
};

impl Deref for History {
    type Target = Past;

    fn deref(&self) -> &Past {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for History {
    fn deref_mut(&mut self) -> &mut Past {
        self.0.get_or_insert_default()
    }
}

impl History {
    /// Nothing ever happened to most units.
    pub(crate) fn is_clean(&self) -> bool {
        self.0.is_none()
    }
}

impl Past {
    /// Nodes that reported a failure.
    pub(crate) fn failed_on(&self) -> Vec<NodeId> {
        let failed = self.losses.iter().filter(|loss| matches!(loss.how, How::Failed { .. }));
        failed.map(|loss| loss.node).collect()
    }

    pub(crate) fn loss_of(&self, node: NodeId) -> Option<&Loss> {
        self.losses.iter().find(|loss| loss.node == node)
    }

    /// Notes a loss; a node that lost the unit before has a say once, and its last one.
    pub(crate) fn lose(&mut self, now: Time, loss: Loss) {
        self.tries = self.tries.saturating_add(1);
        if self.losses.is_empty() {
            self.since = now;
        }
        if let Some(known) = self.losses.iter_mut().find(|known| known.node == loss.node) {
            *known = loss;
        } else if self.losses.len() < LOSSES_KEPT {
            self.losses.push(loss);
        }
    }

    pub(crate) fn drop_by(&mut self, node: NodeId) {
        if self.dropped.contains(&node) {
            return;
        }
        if self.dropped.len() >= DROPPED_KEPT {
            self.dropped.remove(0);
        }
        self.dropped.push(node);
    }
}

impl Unit {
    pub(crate) fn new(span: Span, history: History) -> Unit {
        Unit { span, history, copies: Vec::new(), ballot: None, counted: false }
    }

    /// Nobody has it and nobody answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.copies.is_empty() && self.ballot.is_none()
    }

    /// Its items are merged already; only whether they are right is open.
    pub(crate) fn is_merged(&self) -> bool {
        self.ballot.as_ref().is_some_and(|ballot| ballot.merged)
    }

    /// Somebody lost it and nobody answered: perhaps not everybody may try it now.
    pub(crate) fn is_aside(&self) -> bool {
        self.ballot.is_none() && !self.history.losses.is_empty()
    }

    /// Whether the node has a part in it.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.nodes().any(|other| other == node)
    }

    pub(crate) fn answered_by(&self, node: NodeId) -> bool {
        let mut answers = self.ballot.iter().flat_map(|ballot| &ballot.answers);
        answers.any(|answer| answer.node == node)
    }

    /// Everybody who has it or answered.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let answers = self.ballot.iter().flat_map(|ballot| &ballot.answers);
        self.copies.iter().map(|copy| copy.node).chain(answers.map(|answer| answer.node))
    }

    /// Whether another copy should be lent.
    pub(crate) fn wants(&self, rules: &Rules) -> bool {
        let asked = self.copies.iter().filter(|copy| !copy.extra && !copy.late);
        match &self.ballot {
            None => !self.history.skipped && asked.count() < rules.at_first,
            Some(ballot) => {
                let (votes, weight) = asked.fold((0, 0), |(n, sum), c| (n + 1, sum + c.weight));
                ballot.wants(rules, votes, weight)
            }
        }
    }
}

impl Unit {
    /// Part of [`Job::check`]: no node has a part in it twice, and what its answers decide is settled.
    fn check(&self, id: JobId, rules: &Rules) {
        let start = self.span.start;
        let decided = self.ballot.as_ref().and_then(|ballot| ballot.decided(rules));
        let known = self.is_merged() && !self.copies.is_empty();
        let known = known || self.ballot.as_ref().is_some_and(|ballot| ballot.seeks != 0);
        assert!(decided.is_none() || known, "job {id}, unit {start}: decided and not settled");
        let again = |(at, node)| self.nodes().skip(at + 1).any(|other| other == node);
        let twice = self.nodes().enumerate().any(again);
        assert!(!twice, "job {id}, unit {start}: a node has two parts");
    }
}

/// A job's units in flight.
impl Job {
    /// Books a unit's wishes and whether it is idle.
    pub(crate) fn note_unit(&mut self, start: u64) {
        let rules = self.rules();
        self.wish_no_more(start);
        let Some(unit) = self.units.get_mut(&start) else { return };
        let idle = unit.is_idle();
        if idle && !unit.counted {
            self.items_idle += unit.span.len;
        } else if !idle && unit.counted {
            self.items_idle -= unit.span.len;
        }
        unit.counted = idle;
        if unit.wants(&rules) {
            let wishes = match (unit.ballot.is_some(), unit.is_aside()) {
                (true, _) => &mut self.votes,
                (false, true) => &mut self.aside,
                (false, false) => &mut self.wanting,
            };
            wishes.insert(start);
        }
    }

    fn wish_no_more(&mut self, start: u64) {
        for wishes in [&mut self.wanting, &mut self.aside, &mut self.votes] {
            wishes.remove(&start);
        }
    }

    /// Cuts a span out of a unit that nobody has, so that a smaller one can be lent; the rest keeps
    /// its history.
    pub(crate) fn cut_unit(&mut self, start: u64, size: u64) {
        let Some(unit) = self.units.get_mut(&start) else { return };
        if unit.span.len <= size || !unit.is_idle() {
            return;
        }
        let rest = Span::new(start + size, unit.span.len - size);
        unit.span.len = size;
        let rest = Unit { counted: unit.counted, ..Unit::new(rest, unit.history.clone()) };
        let wishes = if rest.is_aside() { &mut self.aside } else { &mut self.wanting };
        wishes.insert(rest.span.start);
        self.units.insert(rest.span.start, rest);
    }

    /// Makes an item of a unit that nobody has a unit of its own; what was around it waits again. All of them begin anew:
    /// what happened to the whole says nothing of each.
    pub(crate) fn single_out(&mut self, start: u64, item: u64) -> bool {
        let Some(unit) = self.units.get(&start) else { return false };
        let span = unit.span;
        if span.len < 2 || !unit.is_idle() || item < span.start || item >= span.end() {
            return false;
        }
        self.drop_unit(start);
        for (from, to) in [(start, item), (item + 1, span.end())] {
            if from < to {
                self.waiting.insert(Span::new(from, to - from));
            }
        }
        self.open_unit(Span::new(item, 1), History::default());
        true
    }

    pub(crate) fn open_unit(&mut self, span: Span, history: History) {
        self.units.insert(span.start, Unit::new(span, history));
    }

    pub(crate) fn drop_unit(&mut self, start: u64) -> Option<Unit> {
        let unit = self.units.remove(&start)?;
        self.items_idle -= if unit.counted { unit.span.len } else { 0 };
        self.wish_no_more(start);
        unit.nodes().for_each(|node| self.part_ends(node));
        Some(unit)
    }

    /// Part of [`Job::check`]: every list and every count is what the units make it.
    pub(crate) fn check_units(&self) {
        let (id, rules) = (self.id, self.rules());
        for (start, unit) in &self.units {
            assert_eq!(*start, unit.span.start, "job {id}: a unit under a wrong name");
            unit.check(id, &rules);
            let (aside, votes) = (self.aside.contains(start), self.votes.contains(start));
            let wanting = aside || votes || self.wanting.contains(start);
            assert_eq!(wanting, unit.wants(&rules), "job {id}, unit {start}: wanting");
            assert_eq!(votes, wanting && unit.ballot.is_some(), "votes");
            assert_eq!(aside, wanting && unit.is_aside(), "aside");
            let merged = self.merged.get(start).is_some_and(|merged| merged.len == unit.span.len);
            assert_eq!(merged, unit.is_merged(), "job {id}, unit {start}: merged");
        }
        let idle = self.units.values().filter(|unit| unit.is_idle()).map(|unit| unit.span.len);
        assert_eq!(idle.sum::<u64>(), self.items_idle, "job {id}: idle items");
        let copies = self.units.values().map(|unit| unit.copies.len() as u64);
        assert_eq!(copies.sum::<u64>(), self.units_leased, "job {id}: copies");
        let extras = self.units.values().flat_map(|unit| &unit.copies).filter(|copy| copy.extra);
        assert_eq!(extras.count() as u64, self.extras, "job {id}: extra copies");
        let late = self.late.as_ref().map(|late| late.len() as u64);
        assert!(late.is_none_or(|late| late == self.units_leased), "job {id}: late copies");
        let mut wishes = self.wanting.iter().chain(&self.aside).chain(&self.votes);
        let wanted = wishes.all(|start| self.units.contains_key(start));
        assert!(wanted, "job {id} wants copies of units that are not in flight");
    }
}
