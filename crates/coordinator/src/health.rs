//! Whether the coordinator can keep what it is given. Said without the driver, because that is who waits
//! when it cannot.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub(crate) struct Health {
    full: AtomicBool,
    /// Why facts cannot be written now.
    stuck: Mutex<Option<String>>,
    /// The coordinator must stop, whether or not they can.
    given_up: AtomicBool,
}

/// Why nothing new is taken in. It goes on by itself once that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    DiskFull,
    Store(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::DiskFull => f.write_str(
                "the coordinator's disk is full: nothing new is taken until there is room; what it has is kept",
            ),
            Trouble::Store(why) => write!(
                f,
                "the coordinator cannot write its facts ({why}): nothing new is taken until it can; what it has is kept"
            ),
        }
    }
}

impl Health {
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stuck.map(Trouble::Store).or_else(|| self.is_full().then_some(Trouble::DiskFull))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Relaxed);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_stuck(&self, why: Option<String>) {
        *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}
