//! How long a path is, there and back, from each time it was measured.

use shoal_protocol::{Micros, Time};

use super::recent::Recent;

#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smooth: u64,
    vary: u64,
    least: u64,
    recent: Recent,
}

impl RoundTrip {
    pub(super) fn first(now: Time, took: u64) -> RoundTrip {
        let mut recent = Recent::since(now);
        recent.add(now, took, u64::min);
        RoundTrip { smooth: took, vary: took / 2, least: took, recent }
    }

    pub(super) fn add(&mut self, now: Time, took: u64) {
        self.vary = (3 * self.vary + self.smooth.abs_diff(took)) / 4;
        self.smooth = (7 * self.smooth + took) / 8;
        self.least = self.least.min(took);
        self.recent.add(now, took, u64::min);
    }

    pub(super) fn usual(&self) -> Micros {
        Micros(self.smooth)
    }

    /// Longer than nearly all.
    pub(super) fn most(&self) -> Micros {
        Micros(self.smooth + 4 * self.vary)
    }

    /// The least ever: the path without queues.
    pub(super) fn least(&self) -> Micros {
        Micros(self.least)
    }

    /// The least of the last seconds.
    pub(super) fn recent(&self) -> Option<Micros> {
        self.recent.best(u64::min).map(Micros)
    }
}
