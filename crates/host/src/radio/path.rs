//! What is seen of a path: how long it is and how much goes through it, at its best.

use std::time::{Duration, Instant};

pub(super) struct Path {
    seen: Seen,
    before: Option<Seen>,
}

/// At its best, for some time.
#[derive(Clone, Copy)]
struct Seen {
    since: Instant,
    trip: Duration,
    bytes_per_second: u64,
}

impl Seen {
    fn nothing(since: Instant) -> Seen {
        Seen { since, trip: Duration::MAX, bytes_per_second: 0 }
    }
}

impl Path {
    /// What was seen is forgotten after one to two of these: the path may have become another.
    pub(super) const MEMORY: Duration = Duration::from_secs(5);

    pub(super) fn new(now: Instant) -> Path {
        Path { seen: Seen::nothing(now), before: None }
    }

    /// Something came back after so long, and so many bytes had arrived meanwhile.
    pub(super) fn see(&mut self, now: Instant, trip: Duration, bytes: u64) {
        if now - self.seen.since >= Path::MEMORY {
            self.before = Some(self.seen).filter(|seen| seen.bytes_per_second > 0);
            self.seen = Seen::nothing(now);
        }
        let rate = bytes.saturating_mul(1_000_000) / trip.as_micros().max(1) as u64;
        self.seen.trip = self.seen.trip.min(trip);
        self.seen.bytes_per_second = self.seen.bytes_per_second.max(rate);
    }

    /// There and back, once that is known.
    pub(super) fn trip(&self) -> Option<Duration> {
        self.best().map(|best| best.trip)
    }

    /// Bytes that are on it when it is full; 0 where nothing is known.
    pub(super) fn holds(&self) -> u64 {
        let held = |best: Seen| best.bytes_per_second as f64 * best.trip.as_secs_f64();
        self.best().map_or(0, |best| held(best) as u64)
    }

    fn best(&self) -> Option<Seen> {
        let best = self.before.map_or(self.seen, |before| Seen {
            trip: before.trip.min(self.seen.trip),
            bytes_per_second: before.bytes_per_second.max(self.seen.bytes_per_second),
            ..self.seen
        });
        (best.bytes_per_second > 0).then_some(best)
    }
}
