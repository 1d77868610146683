//! What the node's side of the GPU process knows of one unit, and of the way to the coordinator.

use std::time::{Duration, Instant};

use shoal_protocol::{Lease, Micros};

use super::talk::ToWorker;

/// A kernel that is no longer wanted may end by itself in this time: most do, and a restart costs
/// more.
const ABORT_GRACE: Duration = Duration::from_millis(600);

/// How a process reaches the coordinator.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) base: String,
    pub(crate) token: String,
    pub(crate) pin: Option<String>,
    pub(crate) shelf: Option<String>,
}

impl Access {
    pub(super) fn message(&self) -> ToWorker {
        let Access { base, token, pin, shelf } = self.clone();
        ToWorker::Session { base, token, pin, shelf }
    }
}

pub(super) struct Unit {
    pub(super) lease: Lease,
    pub(super) limit: Micros,
    /// When its kernel started, while it runs.
    pub(super) computing: Option<Instant>,
    /// When it was no longer wanted.
    pub(super) aborted: Option<Instant>,
    pub(super) repeats: u32,
}

impl Unit {
    /// When this unit's process must be killed if nothing happens before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let computing = self.computing?;
        match self.aborted {
            Some(aborted) => Some(aborted + ABORT_GRACE),
            None => Some(computing + Duration::from_micros(self.limit.0)),
        }
    }

    pub(super) fn again(&mut self) -> Lease {
        self.computing = None;
        self.repeats += 1;
        self.lease
    }
}
