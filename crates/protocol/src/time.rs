//! Moments and durations as numbers. The pure crates are told the time; they never read it.

use core::ops::{Add, Sub};
use serde::{Deserialize, Serialize};

/// A moment: microseconds since some start the shell chose (the coordinator: the Unix epoch).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time(pub u64);

/// A duration in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Micros(pub u64);

impl Micros {
    pub const fn from_millis(millis: u64) -> Micros {
        Micros(millis * 1_000)
    }

    pub const fn from_secs(secs: u64) -> Micros {
        Micros(secs * 1_000_000)
    }

    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

impl Add<Micros> for Time {
    type Output = Time;

    fn add(self, rhs: Micros) -> Time {
        Time(self.0.saturating_add(rhs.0))
    }
}

/// How long after `rhs`; zero if it is not after, because clocks of shells may step back.
impl Sub for Time {
    type Output = Micros;

    fn sub(self, rhs: Time) -> Micros {
        Micros(self.0.saturating_sub(rhs.0))
    }
}
