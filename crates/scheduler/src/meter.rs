//! How fast things go.

use shoal_protocol::{Micros, Time};

/// How fast a peer does one job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Items per second of one slot, in thousandths.
    pub(crate) milli_rate: u64,
    pub(crate) slots: u64,
    pub(crate) last_size: u64,
    /// The fastest it ever was.
    pub(crate) best: u64,
    /// Guessed after a change: the next measurement replaces it.
    pub(crate) stale: bool,
}

impl Pace {
    /// The rate in percent of the best it ever had.
    pub(crate) fn percent(&self) -> u8 {
        (self.milli_rate / (self.best / 100).max(1)).min(100) as u8
    }

    pub(crate) fn all_slots(&self) -> u64 {
        self.milli_rate.saturating_mul(self.slots)
    }
}

/// Counts per second over the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    start: Time,
    count: u64,
    before: u64,
}

impl Meter {
    /// Long enough to be steady, short enough to follow.
    const WINDOW: Micros = Micros::from_secs(2);

    pub(crate) fn add(&mut self, now: Time, count: u64) {
        self.turn(now);
        self.count = self.count.saturating_add(count);
    }

    /// Counts per second, in thousandths.
    pub(crate) fn milli_rate(&self, now: Time) -> u64 {
        let mut meter = *self;
        meter.turn(now);
        let span = (now - meter.start).0 + if meter.before > 0 { Self::WINDOW.0 } else { 0 };
        let rate = u128::from(meter.before.saturating_add(meter.count)) * 1_000_000_000
            / u128::from(span.max(1_000));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    fn turn(&mut self, now: Time) {
        let passed = (now - self.start).0 / Self::WINDOW.0;
        match passed {
            0 => {}
            1 => {
                self.before = core::mem::take(&mut self.count);
                self.start = self.start + Self::WINDOW;
            }
            _ => *self = Meter { start: now, ..Meter::default() },
        }
    }
}
