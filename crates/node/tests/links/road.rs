//! A path between two ends, as the world has it.

use shoal_protocol::{Micros, Time};
use shoal_sim::Wire;

/// A path as the world has it.
pub(crate) struct Road {
    pub(crate) wire: Wire,
    pub(crate) bytes_per_second: u64,
    /// Frames of an earlier life are lost.
    pub(crate) life: u64,
    pub(crate) up: bool,
    /// Nothing passes, and nobody is told.
    pub(crate) dead: bool,
    /// Ends that do not have it yet: what comes for them is lost.
    pub(crate) deaf: [bool; 2],
    /// When each direction has passed what it was given.
    pub(crate) free: [Time; 2],
    /// Frames and bytes given to it by each end.
    pub(crate) frames: [u64; 2],
    pub(crate) bytes: [u64; 2],
}

impl Road {
    /// One that loses nothing and keeps the order.
    pub(crate) fn new(delay_millis: u64, bytes_per_second: u64) -> Road {
        Road {
            wire: Wire { delay: Micros::from_millis(delay_millis), ..Wire::default() },
            bytes_per_second,
            life: 0,
            up: false,
            dead: false,
            deaf: [false; 2],
            free: [Time(0); 2],
            frames: [0; 2],
            bytes: [0; 2],
        }
    }

    pub(crate) fn faulty(
        mut self,
        lost_per_mille: u64,
        doubled_per_mille: u64,
        jitter: u64,
    ) -> Road {
        self.wire.jitter = Micros::from_millis(jitter);
        (self.wire.lost, self.wire.doubled) = (lost_per_mille * 1_000, doubled_per_mille * 1_000);
        self
    }
}
