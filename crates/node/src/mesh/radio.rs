//! The ladder's upper rung: when to dial for a direct channel, how long to try, how long to rest after it
//! failed or died. The node with the lower number dials. Which dial words belong to is said with them,
//! because the peer's may cross a new one.

use shoal_protocol::{Micros, Time};

/// Rest after the first failure or death; it doubles with each further.
const FIRST_REST: Micros = Micros::from_secs(2);
const LONGEST_REST: Micros = Micros::from_secs(60);
/// A channel that lived this long has earned that earlier failures are forgotten.
const FORGIVEN_AFTER: Micros = Micros::from_secs(60);
/// ICE tries its pairs for about this long.
const TRY_FOR: Micros = Micros::from_secs(20);
/// New dials of a peer are taken no faster; an honest one rests longer.
const LEAST_BETWEEN: Micros = Micros::from_secs(1);
/// Messages of a peer's radio for one dial: an offer and its candidates are some dozens.
const MAX_WORDS: u32 = 512;

#[derive(Default)]
pub(super) struct Ladder {
    dial: u32,
    /// When the present dial began, and messages of the peer's radio since.
    begun: Option<Time>,
    words: u32,
    /// How often in a row it failed or died early.
    failures: u32,
    rung: Rung,
}

#[derive(Default)]
enum Rung {
    /// On the relay. The dialling end has not begun; the other waits for words.
    #[default]
    Relay,
    /// Failed: the dialling end tries again then.
    Resting {
        until: Time,
    },
    Trying {
        until: Time,
    },
    Up {
        since: Time,
    },
    /// The peer has no radio.
    Never,
}

/// What is to be done about a word of the peer's radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Of an earlier dial, or of one too soon.
    Late,
    /// Of the present dial.
    Now,
    /// Of a new dial: the radio begins anew. Whether the old channel was up.
    Anew {
        was_up: bool,
    },
    Flood,
}

impl Ladder {
    pub(super) fn is_up(&self) -> bool {
        matches!(self.rung, Rung::Up { .. })
    }

    /// Whether the radio is or was told to do something that it should not go on with.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.rung, Rung::Up { .. } | Rung::Trying { .. })
    }

    pub(super) fn dial_number(&self) -> u32 {
        self.dial
    }

    /// The dialling end may begin. Whether it does.
    pub(super) fn dial(&mut self, now: Time) -> bool {
        let begins = match self.rung {
            Rung::Relay => true,
            Rung::Resting { until } => until <= now,
            Rung::Trying { .. } | Rung::Up { .. } | Rung::Never => false,
        };
        if begins {
            self.begin(now, self.dial.saturating_add(1));
        }
        begins
    }

    fn begin(&mut self, now: Time, dial: u32) {
        (self.dial, self.begun, self.words) = (dial, Some(now), 0);
        self.rung = Rung::Trying { until: now + TRY_FOR };
    }

    /// The peer's radio said something.
    pub(super) fn hear(&mut self, now: Time, dial: u32, dials: bool) -> Heard {
        let soon = self.begun.is_some_and(|begun| now - begun < LEAST_BETWEEN);
        if dial > self.dial && !dials && !soon {
            let was_up = self.is_up();
            self.begin(now, dial);
            self.words = 1;
            return Heard::Anew { was_up };
        }
        if dial != self.dial || !self.is_busy() {
            return Heard::Late;
        }
        self.words += 1;
        if self.words > MAX_WORDS { Heard::Flood } else { Heard::Now }
    }

    /// The radio has a channel. Whether it was asked for.
    pub(super) fn rise(&mut self, now: Time) -> bool {
        let wanted = matches!(self.rung, Rung::Trying { .. });
        if wanted {
            self.rung = Rung::Up { since: now };
        }
        wanted
    }

    /// The channel is gone or did not come. Whether it was there.
    pub(super) fn fall(&mut self, now: Time) -> bool {
        let was_up = match self.rung {
            Rung::Up { since } => {
                self.failures = if now - since >= FORGIVEN_AFTER { 0 } else { self.failures };
                true
            }
            Rung::Trying { .. } => false,
            Rung::Relay | Rung::Resting { .. } | Rung::Never => return false,
        };
        let rest = Micros(FIRST_REST.0 << self.failures.min(8)).min(LONGEST_REST);
        self.failures = self.failures.saturating_add(1);
        self.rung = Rung::Resting { until: now + rest };
        was_up
    }

    /// It tried long enough. Whether that is now.
    pub(super) fn gives_up(&self, now: Time) -> bool {
        matches!(self.rung, Rung::Trying { until } if until <= now)
    }

    /// The words on their way are forgotten: what is up stays, what tries begins anew. Whether it tried.
    pub(super) fn forget_words(&mut self) -> bool {
        let tried = matches!(self.rung, Rung::Trying { .. });
        if tried {
            self.rung = Rung::Relay;
        }
        self.begun = None;
        tried
    }

    /// The peer has no radio. Whether this node's was at work.
    pub(super) fn never(&mut self) -> bool {
        let busy = self.is_busy();
        self.rung = Rung::Never;
        busy
    }

    /// When time alone brings something about.
    pub(super) fn due(&self, dials: bool) -> Option<Time> {
        match self.rung {
            Rung::Trying { until } => Some(until),
            Rung::Resting { until } => Some(until).filter(|_| dials),
            Rung::Relay | Rung::Up { .. } | Rung::Never => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time(0) + Micros::from_secs(seconds)
    }

    #[test]
    fn patience_grows_with_each_failure_and_a_long_life_forgives() {
        let mut ladder = Ladder::default();
        let mut now = at(0);
        assert!(ladder.dial(now), "the first time at once");
        for rest in [2, 4, 8, 16, 32, 60, 60, 60] {
            assert!(ladder.rise(now) && ladder.fall(now + Micros::from_secs(10)));
            now = now + Micros::from_secs(10);
            assert_eq!(ladder.due(true), Some(now + Micros::from_secs(rest)));
            assert!(!ladder.dial(now), "not before");
            now = now + Micros::from_secs(rest);
            assert!(ladder.dial(now));
        }
        assert!(ladder.rise(now) && ladder.fall(now + FORGIVEN_AFTER));
        assert_eq!(ladder.due(true), Some(now + FORGIVEN_AFTER + FIRST_REST));
    }

    #[test]
    fn words_of_an_older_dial_are_late_and_of_a_newer_one_begin_anew() {
        let mut listens = Ladder::default();
        assert_eq!(listens.hear(at(1), 1, false), Heard::Anew { was_up: false });
        assert_eq!(listens.hear(at(1), 1, false), Heard::Now);
        assert_eq!(listens.hear(at(1), 2, false), Heard::Late, "too soon");
        assert!(listens.rise(at(2)));
        assert_eq!(listens.hear(at(3), 2, false), Heard::Anew { was_up: true });
        assert_eq!(listens.hear(at(3), 1, false), Heard::Late);
        for _ in 1..MAX_WORDS {
            assert_eq!(listens.hear(at(3), 2, false), Heard::Now);
        }
        assert_eq!(listens.hear(at(3), 2, false), Heard::Flood);
        let mut dials = Ladder::default();
        assert!(dials.dial(at(1)));
        assert_eq!(dials.hear(at(5), 9, true), Heard::Late, "the other end never dials");
    }
}
