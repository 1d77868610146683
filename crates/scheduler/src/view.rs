//! What people see: plain values for pages, the CLI and HTTP.

use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Caps, JobId, NodeId, Span, Time};

use crate::state::{JobFailure, JobState};

#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    pub job: JobId,
    pub name: String,
    pub owner: String,
    /// `noop`, `map`, `render` or `exec`.
    pub kind: &'static str,
    pub state: JobState,
    pub items: u64,
    pub items_done: u64,
    /// Items lent out now.
    pub items_leased: u64,
    pub units_done: u64,
    pub units_leased: u64,
    /// Units that were lent again after a node left, stalled or failed.
    pub retries: u64,
    pub submitted: Time,
    pub first_lent: Option<Time>,
    pub ended: Option<Time>,
    /// Recent items per second, in thousandths.
    pub milli_rate: u64,
    /// Nodes connected now that could compute this job.
    pub able_nodes: u64,
    pub shares: Vec<Share>,
    pub failure: Option<JobFailure>,
}

/// How much of a job one node did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub node: NodeId,
    pub items: u64,
    pub units: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    pub node: NodeId,
    pub caps: Caps,
    pub paused: bool,
    pub joined: Time,
    /// Units lent to it now.
    pub leases: u64,
    /// Of those, how many it said it is computing.
    pub running: u64,
    /// Job of one running unit.
    pub job: Option<JobId>,
    /// Measured items per second, in thousandths, on the job above or the last one.
    pub milli_rate: u64,
    /// Share of the last seconds it computed, in percent of its slots.
    pub load: u8,
    pub units_done: u64,
    pub units_failed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitView {
    pub span: Span,
    pub state: UnitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// Not yet cut into units, or waiting to be lent again.
    Waiting,
    Leased { node: NodeId, attempt: Attempt, since: Time },
    Done { node: NodeId },
}
