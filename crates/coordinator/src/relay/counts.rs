//! What the relay did.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Dropped, Way};

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
    /// Frames that were taken and thrown away, because the relay held too much for all nodes together.
    pub shed: u64,
    /// Of the bytes: those that came by QUIC, and those that left by it. The others came and left by socket.
    pub quic_in: u64,
    pub quic_out: u64,
    /// Ways by QUIC that nodes opened.
    pub quic_opened: u64,
    /// Connections by QUIC that were none of a node's: too many at once, no greeting in time, no session, no frames.
    pub quic_refused: u64,
}

impl RelayCounts {
    /// Why frames were dropped, and how many.
    pub fn dropped(&self) -> [(&'static str, u64); 7] {
        [
            ("malformed", self.malformed),
            ("forged", self.forged),
            ("stranger", self.stranger),
            ("stale", self.stale),
            ("full", self.full),
            ("gone", self.gone),
            ("shed", self.shed),
        ]
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    frames: AtomicU64,
    bytes: AtomicU64,
    malformed: AtomicU64,
    forged: AtomicU64,
    stranger: AtomicU64,
    stale: AtomicU64,
    full: AtomicU64,
    gone: AtomicU64,
    shed: AtomicU64,
    quic_in: AtomicU64,
    quic_out: AtomicU64,
    quic_opened: AtomicU64,
    quic_refused: AtomicU64,
}

impl Counters {
    pub(super) fn passed(&self, size: u64, came: Way, goes: Way) {
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        if came == Way::Quic {
            self.quic_in.fetch_add(size, Ordering::Relaxed);
        }
        if goes == Way::Quic {
            self.quic_out.fetch_add(size, Ordering::Relaxed);
        }
    }

    pub(super) fn shed(&self, frames: u64) {
        self.shed.fetch_add(frames, Ordering::Relaxed);
    }

    pub(crate) fn quic_opened(&self) {
        self.quic_opened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn quic_refused(&self) {
        self.quic_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, why: Dropped) {
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
            shed: read(&self.shed),
            quic_in: read(&self.quic_in),
            quic_out: read(&self.quic_out),
            quic_opened: read(&self.quic_opened),
            quic_refused: read(&self.quic_refused),
        }
    }
}
