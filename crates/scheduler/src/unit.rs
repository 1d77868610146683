//! A unit in flight: cut from its job and not yet merged, or merged and looked at again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use shoal_protocol::{Attempt, Failure, NodeId, Span, Time};

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
}
