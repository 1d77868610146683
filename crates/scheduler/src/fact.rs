//! What is durable. Replaying all facts in order gives back jobs, nodes' names and merged units;
//! leases and connections are not facts: they die with the process.

use serde::{Deserialize, Serialize};
use shoal_protocol::{Hash, Identity, JobId, JobSpec, NodeId, Span, Time};

use crate::state::JobFailure;

/// Append new kinds at the end: the position is the format on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// The coordinator started for the `life`-th time.
    Life { life: u32 },
    /// A node joined for the first time.
    Node { node: NodeId, identity: Identity },
    Submitted { job: JobId, at: Time, spec: JobSpec },
    /// A unit's result is merged. Never recorded twice for one item.
    Merged { job: JobId, span: Span, node: NodeId, place: Option<Place> },
    Finished { job: JobId, at: Time },
    Failed { job: JobId, at: Time, failure: JobFailure },
    Cancelled { job: JobId, at: Time },
    Removed { job: JobId },
}

/// Where a unit's bytes are in its job's results file, and their hash, so that a torn write shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub offset: u64,
    pub size: u64,
    pub hash: Hash,
}
