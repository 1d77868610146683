//! The least or most of the last seconds, in constant memory.

use shoal_protocol::{Micros, Time};

/// Extremes are taken over one to two of these: long against a round trip, short against a change of network.
const RECENT: Micros = Micros::from_secs(5);

/// An extreme of the last seconds: of this stretch of time and of the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    since: Time,
    now: Option<u64>,
    before: Option<u64>,
}

impl Recent {
    pub(super) fn since(now: Time) -> Recent {
        Recent { since: now, ..Recent::default() }
    }

    pub(super) fn add(&mut self, now: Time, value: u64, better: fn(u64, u64) -> u64) {
        if now - self.since >= RECENT {
            (self.before, self.now, self.since) = (self.now, None, now);
        }
        self.now = Some(self.now.map_or(value, |known| better(known, value)));
    }

    pub(super) fn best(&self, better: fn(u64, u64) -> u64) -> Option<u64> {
        self.now.into_iter().chain(self.before).reduce(better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_past_is_forgotten() {
        let at = |seconds| Time(0) + Micros::from_secs(seconds);
        let mut most = Recent::since(at(0));
        most.add(at(1), 9, u64::max);
        most.add(at(6), 3, u64::max);
        assert_eq!(most.best(u64::max), Some(9), "one stretch ago still counts");
        most.add(at(12), 4, u64::max);
        assert_eq!(most.best(u64::max), Some(4));
    }
}
