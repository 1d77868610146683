//! A unit in flight: cut from its job, not yet merged.

use alloc::vec::Vec;
use shoal_protocol::{Attempt, JobId, Lane, Micros, NodeId, Span, Time};

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) span: Span,
    pub(crate) history: History,
    /// Who has it now: never one node twice.
    pub(crate) copies: Vec<Copy>,
}

/// One lending that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) attempt: Attempt,
    pub(crate) node: NodeId,
}

/// What happened to a unit so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Distinct nodes that reported a failure.
    pub(crate) failed_on: Vec<NodeId>,
    /// Lendings that ended in failure or in the node's vanishing while it computed.
    pub(crate) tries: u32,
}

/// A unit lent to a node.
#[derive(Clone, Debug)]
pub(crate) struct Loan {
    pub(crate) job: JobId,
    /// First item of the unit it is a copy of.
    pub(crate) unit: u64,
    /// The items lent.
    pub(crate) span: Span,
    pub(crate) node: NodeId,
    pub(crate) lane: Lane,
    pub(crate) since: Time,
    /// When the node first said that it computes it.
    pub(crate) running: Option<Time>,
    /// How long it should take.
    pub(crate) expected: Micros,
}

impl Unit {
    pub(crate) fn new(span: Span, history: History) -> Unit {
        Unit { span, history, copies: Vec::new() }
    }

    /// Nobody has it.
    pub(crate) fn is_idle(&self) -> bool {
        self.copies.is_empty()
    }

    /// Whether the node has a part in it.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.copies.iter().any(|copy| copy.node == node)
    }

    /// Whether another copy should be lent.
    pub(crate) fn wants(&self) -> bool {
        self.copies.is_empty()
    }
}
