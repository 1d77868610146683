//! What a node tells its donor.

use shoal_protocol::{JobId, Span};

use super::Asker;

/// What a donor may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Offers {
        name: String,
        cpus: u16,
        gpu: Option<String>,
        why_no_gpu: Option<String>,
    },
    Joined {
        node: u64,
    },
    /// The connection is gone or could not be made; it is tried again.
    Away {
        reason: String,
    },
    /// The first unit of a job begins.
    Works(Asker),
    /// This node has a place in a crew, new or in a new epoch.
    InCrew {
        job: JobId,
        others: usize,
        rows: Span,
        /// Steps that were done before.
        from: u64,
    },
    /// A job's code is not what was signed: none of it is run.
    Refuses {
        asker: Asker,
        reason: String,
    },
    /// By the donor's choice nothing of this job is run.
    Declines(Asker),
    /// A blob of that many bytes is needed; so many of them are here from before.
    Fetches {
        bytes: u64,
        here: u64,
    },
    /// So many bytes of blobs went from here to other nodes, all in all.
    Gave {
        bytes: u64,
    },
    /// The battery is low: nothing is lent until it is charged.
    Paused,
    Resumed,
    GpuRestarted {
        reason: String,
    },
    GpuGone {
        reason: String,
    },
}

impl Notice {
    /// Whether it says whose work is run or not run.
    pub(crate) fn is_about_work(&self) -> bool {
        match self {
            Notice::Works(_)
            | Notice::InCrew { .. }
            | Notice::Refuses { .. }
            | Notice::Declines(_) => true,
            Notice::Offers { .. }
            | Notice::Joined { .. }
            | Notice::Away { .. }
            | Notice::Fetches { .. }
            | Notice::Gave { .. }
            | Notice::Paused
            | Notice::Resumed
            | Notice::GpuRestarted { .. }
            | Notice::GpuGone { .. } => false,
        }
    }
}
