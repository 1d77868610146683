//! A path between two ends, as the world has it.

use shoal_protocol::{Micros, Time};

/// What a path does to frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// One way.
    pub(crate) delay: Micros,
    /// Up to this much more, frame by frame; frames then overtake each other.
    pub(crate) jitter: Micros,
    pub(crate) lost_per_mille: u64,
    pub(crate) doubled_per_mille: u64,
    pub(crate) bytes_per_second: u64,
}

impl Wire {
    pub(crate) fn new(delay_millis: u64, bytes_per_second: u64) -> Wire {
        let delay = Micros::from_millis(delay_millis);
        let (jitter, lost_per_mille, doubled_per_mille) = (Micros(0), 0, 0);
        Wire { delay, jitter, lost_per_mille, doubled_per_mille, bytes_per_second }
    }

    pub(crate) fn faulty(self, lost_per_mille: u64, doubled_per_mille: u64, jitter: u64) -> Wire {
        let jitter = Micros::from_millis(jitter);
        Wire { lost_per_mille, doubled_per_mille, jitter, ..self }
    }
}

/// A path as the world has it.
pub(crate) struct Road {
    pub(crate) wire: Wire,
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
    pub(crate) fn new(wire: Wire) -> Road {
        Road {
            wire,
            life: 0,
            up: false,
            dead: false,
            deaf: [false; 2],
            free: [Time(0); 2],
            frames: [0; 2],
            bytes: [0; 2],
        }
    }
}
