//! Why a request is not answered, and whose fault that is.

use alloc::string::String;
use core::fmt;
use shoal_protocol::{Failure, NodeId};

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError {
    /// There is no such service, or it was ended.
    Gone,
    /// As many wait as may.
    Full { waiting: usize },
    /// All that wait or are at work have as many bytes as may be.
    Heavy { bytes: u64 },
    /// Its time is over: at work, or before any node was free.
    Deadline { begun: bool, why: Option<String> },
    /// The service itself failed on it.
    Failed { failure: Failure, node: NodeId },
    /// Nodes were lost with it, and no more are asked.
    Lost { reason: String, tries: u32 },
    /// Whoever was in the middle of it gave another wrong answer: what it said of this one may be wrong as well.
    Doubted { why: String },
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Gone => f.write_str("the service has been removed"),
            CallError::Full { waiting } => {
                write!(f, "{waiting} requests are waiting already: try again later")
            }
            CallError::Heavy { bytes } => {
                let mib = bytes >> 20;
                write!(f, "requests of {mib} MiB are waiting or at work already: try again later")
            }
            CallError::Deadline { begun: true, .. } => {
                f.write_str("the request did not finish before its deadline")
            }
            CallError::Deadline { begun: false, why } => {
                f.write_str("no node was free to take the request before its deadline")?;
                why.iter().try_for_each(|why| write!(f, ": {why}"))
            }
            CallError::Failed { failure, node } => write!(f, "{failure}, on node {node}"),
            CallError::Doubted { why } => {
                write!(f, "the answer was broken off, because it may be wrong: {why}")
            }
            CallError::Lost { reason, tries } => {
                write!(
                    f,
                    "the request was lost with its node {tries} times; the last time: {reason}"
                )
            }
        }
    }
}

/// Another node may do better.
pub(super) fn is_nodes_fault(failure: &Failure) -> bool {
    match failure {
        Failure::DeviceLost { .. }
        | Failure::OutOfMemory { .. }
        | Failure::Fetch { .. }
        | Failure::Internal { .. }
        | Failure::Unable { .. } => true,
        Failure::Kernel { .. }
        | Failure::Trap { .. }
        | Failure::Exit { .. }
        | Failure::Limit { .. }
        | Failure::Signature { .. }
        | Failure::Outside { .. }
        | Failure::Model { .. } => false,
    }
}
