//! A unit in flight: cut from its job and not yet merged, or merged and looked at again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use shoal_protocol::{Attempt, JobId, Lane, Micros, NodeId, Span, Time};

use crate::assign::Victim;
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
}

/// What happened to a unit so far. Most units have none, and there are many units.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(Option<Box<Past>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Distinct nodes that reported a failure.
    pub(crate) failed_on: Vec<NodeId>,
    /// Where each of those connected from.
    pub(crate) failed_from: Vec<u64>,
    /// Lendings that ended in failure or in the node's vanishing while it computed.
    pub(crate) tries: u32,
    /// Distinct nodes that vanished soon after they began.
    pub(crate) victims: Vec<Victim>,
}

static NOTHING: Past =
    Past { failed_on: Vec::new(), failed_from: Vec::new(), tries: 0, victims: Vec::new() };

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
    pub(crate) since: Time,
    /// When the node first said that it computes it.
    pub(crate) running: Option<Time>,
    /// How long it should take, and when it should be done with all that was lent before it.
    pub(crate) expected: Micros,
    pub(crate) due: Time,
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

    /// Whether the node has a part in it.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.nodes().any(|other| other == node)
    }

    /// Everybody who has it or answered.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let answers = self.ballot.iter().flat_map(|ballot| &ballot.answers);
        self.copies.iter().map(|copy| copy.node).chain(answers.map(|answer| answer.node))
    }

    /// Whether another copy should be lent.
    pub(crate) fn wants(&self, rules: &Rules) -> bool {
        let asked = self.copies.iter().filter(|copy| !copy.extra);
        match &self.ballot {
            None => asked.count() < rules.at_first,
            Some(ballot) => {
                let (votes, weight) = asked.fold((0, 0), |(n, sum), c| (n + 1, sum + c.weight));
                ballot.wants(rules, votes, weight)
            }
        }
    }
}
