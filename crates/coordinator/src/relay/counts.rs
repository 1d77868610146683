//! What the relay did.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Dropped;

/// Since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    pub frames: u64,
    /// Of those frames, headers included.
    pub bytes: u64,
    /// Frames that were not passed on, by reason.
    pub malformed: u64,
    pub forged: u64,
    pub stranger: u64,
    pub stale: u64,
    pub full: u64,
    pub gone: u64,
}

impl RelayCounts {
    /// Why frames were dropped, and how many.
    pub fn dropped(&self) -> [(&'static str, u64); 6] {
        [
            ("malformed", self.malformed),
            ("forged", self.forged),
            ("stranger", self.stranger),
            ("stale", self.stale),
            ("full", self.full),
            ("gone", self.gone),
        ]
    }
}

#[derive(Default)]
pub(super) struct Counters {
    frames: AtomicU64,
    bytes: AtomicU64,
    malformed: AtomicU64,
    forged: AtomicU64,
    stranger: AtomicU64,
    stale: AtomicU64,
    full: AtomicU64,
    gone: AtomicU64,
}

impl Counters {
    pub(super) fn passed(&self, size: u64) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, why: Dropped) {
        let counter = match why {
            Dropped::Malformed => &self.malformed,
            Dropped::Forged => &self.forged,
            Dropped::Stranger => &self.stranger,
            Dropped::Stale => &self.stale,
            Dropped::Full => &self.full,
            Dropped::Gone => &self.gone,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> RelayCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RelayCounts {
            frames: read(&self.frames),
            bytes: read(&self.bytes),
            malformed: read(&self.malformed),
            forged: read(&self.forged),
            stranger: read(&self.stranger),
            stale: read(&self.stale),
            full: read(&self.full),
            gone: read(&self.gone),
        }
    }
}
